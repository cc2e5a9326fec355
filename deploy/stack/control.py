"""The commands up, down, status, logs and run, and their messages."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy.stack.banner import banner, short
from deploy.stack.change import COUNTED, SettingsChange
from deploy.stack.command import Command, inherited_environment, run_to_end
from deploy.stack.failure import StackError
from deploy.stack.fingerprint import changes
from deploy.stack.identity import alive, rss_mb, send, wait_gone
from deploy.stack.journal import Phase, ProcessNote, Report, State, read
from deploy.stack.layout import PROJECT_ROOT, Layout, command_line
from deploy.stack.log_view import merged
from deploy.stack.maintenance import alone
from deploy.stack.postgres import end_backends
from deploy.stack.programs import (
    check_command,
    environment,
    require_complete,
    require_port,
    running_servers,
)
from deploy.stack.saved_settings import SavedSettings, override
from deploy.stack.supervisor import (
    ALREADY_RUNNING,
    HEALTHY_WITHIN_S,
    REFUSED,
    AlreadyRunning,
    end_leftovers,
    is_running,
    supervise,
)
from deploy.stack.waiting import wait_until
from pipeline.settings import Settings, load

DOWN_WITHIN_S = 60.0
ROLL_WITHIN_S = 160.0  # for each process: its stages end, and another one becomes healthy
# Settings that choose the vector index.
INDEXED = {
    *("MEMLANE_VECTORS", "MEMLANE_VECTOR_BUCKETS", "MEMLANE_EMBEDDER__MODEL"),
    *("MEMLANE_DATABASE_URL",),
}
LOST = (
    "In {root} are all memories and logs; `env`: the saved settings, with MEMLANE_SEAL_KEY and the"
    " keys of providers; and `api_key`. A backup has the memories and the settings, but no keys."
)
# After its own deadline the supervisor still needs time to stop what it started.
UP_WITHIN_S = HEALTHY_WITHIN_S + DOWN_WITHIN_S


def up(
    settings: Settings,
    layout: Layout,
    saved: SavedSettings,
    programs: Path | None = None,
    *,
    brief: bool = False,
    sure: bool = False,
) -> int:
    """Start the stack and wait until everything is healthy. Returns 1 after printing the reason if
    it fails. The settings of a stack that started are saved.

    New settings are checked and shown, and applied after a yes: `sure`, or at the terminal. API and
    workers are replaced one by one if that is enough, else the stack restarts.

    `brief`: print one line, without a key and a first curl, and restart nothing.

    Errors: StackError for changed settings that cannot work; the running stack is not stopped then.
    """
    layout.create()
    if saved.taken:
        print(f"From {saved.path}, not set in this shell: {', '.join(saved.taken)}.", flush=True)
    state = _settled(layout) if is_running(layout) else None
    changed = changes(settings, state.salt, state.settings) if state else []
    if state is not None and (brief or state.foreground or not changed):
        if not changed and not saved.path.exists():  # started by a release that saved nothing
            saved.write(saved.current(settings))
        print(_already_running(changed, state) + "\n" * (not brief))
        return _await_healthy(layout, None, brief)
    change = SettingsChange.of(settings, layout, saved, state, changed)
    if state is not None:
        _require_usable(settings, layout, changed)
    if not change.agreed(sure=sure):
        return 1
    if state is not None and change.rolls:
        return _roll(settings, layout, saved, state, change)
    if state is not None:
        down(layout)
    return _start(settings, layout, saved, programs, brief=brief)


def _start(
    settings: Settings, layout: Layout, saved: SavedSettings, programs: Path | None, *, brief: bool
) -> int:
    """Start a supervisor, and save the settings once everything is healthy.

    Errors: StackError if another command has started servers on the data directory.
    """
    _require_no_servers(layout)
    supervisor = _detach(layout, programs)
    try:
        code = _await_healthy(layout, supervisor, brief)
    except KeyboardInterrupt:
        print("\nInterrupted: stopping what was started.")
        supervisor.terminate()
        supervisor.wait()
        return 130
    if code == 0:
        saved.write(saved.current(settings))
    return code


def _require_no_servers(layout: Layout) -> None:
    """Check that no other command has started servers; another `up` may. Errors: StackError."""
    try:
        with alone(layout):
            return
    except StackError:
        if not is_running(layout):
            raise


def _roll(
    settings: Settings,
    layout: Layout,
    saved: SavedSettings,
    state: State,
    change: SettingsChange,
) -> int:
    """Have the running supervisor apply a change process by process.

    Errors: StackError if a process does not become healthy; the settings before are saved again.
    """
    who = state.supervisor.identity()
    saved.write(saved.current(settings))
    counted = change.how == COUNTED
    doing = "Adding or draining processes" if counted else "Replacing API and workers one by one"
    print(f"{doing} ...", flush=True)
    if who is not None:
        send(who, signal.SIGHUP)
    within_s = ROLL_WITHIN_S * (settings.workers + settings.api_processes + 1)
    wait_until(lambda: _reloads(layout) != state.reloads, within_s)
    after = _current(layout)
    if after is None or after.reloads == state.reloads or after.reload_failure:
        saved.write(saved.file)
        reason = after.reload_failure if after else ""
        raise StackError(
            f"The settings were not applied: {reason or 'the supervisor did not answer'}."
            f" The ones before are saved again; see `{command_line('logs')}`."
        )
    print(f"Memlane runs with the new settings: {after.url}")
    return 0


def _reloads(layout: Layout) -> int | None:
    state = _current(layout)
    return state.reloads if state else -1


def scale(layout: Layout, saved: SavedSettings, counts: Mapping[str, int]) -> int:
    """Change the number of workers or API processes, without a restart of the others.

    `counts`: by setting, such as MEMLANE_WORKERS. A worker that goes finishes its stages. A stack
    that does not run starts with these numbers next time.

    Errors: StackError if nothing is saved yet, or if this shell has other settings as well.
    """
    if not saved.path.exists():
        raise StackError(f"No settings are saved yet: run `{command_line('up')}` first.")
    values = {name: str(count) for name, count in counts.items()}
    saved = override(saved, values)
    settings = load()
    others = saved.differences(settings).keys() - values.keys()
    if others:
        names = ", ".join(sorted(others))
        raise StackError(f"This shell also changes {names}: use `{command_line('up')}`.")
    if not is_running(layout):
        saved.write(saved.current(settings))
        print(f"Saved. `{command_line('up')}` starts with it.")
        return 0
    state = _settled(layout)
    if state is None or not changes(settings, state.salt, state.settings):
        print("Nothing to change.")
        return 0
    change = SettingsChange.of(settings, layout, saved, state, sorted(values))
    if not change.rolls:
        raise StackError(f"{change.how} Use `{command_line('up')}`.")
    return _roll(settings, layout, saved, state, change)


def _already_running(changed: list[str], state: State) -> str:
    if not changed:
        return "Memlane is already running."
    where = f"use `{command_line('up')}`"
    how = "restart it where it runs in the foreground" if state.foreground else where
    return (
        f"Memlane is already running, with other settings: {', '.join(changed)}."
        f" To apply those given now, {how}."
    )


def _require_usable(settings: Settings, layout: Layout, changed: list[str]) -> None:
    """Check the new settings while the stack still runs. Errors: StackError."""
    require_complete(settings)
    if "MEMLANE_PORT" in changed:
        require_port(settings)
    refused = _refused_index(settings, layout) if INDEXED & set(changed) else []
    command = check_command(settings, layout)
    if command is not None:
        layout.check_report.unlink(missing_ok=True)
        # If the check itself crashes, it says nothing about the settings.
        if run_to_end(command).returncode == 0:
            report = Report.model_validate_json(layout.check_report.read_text())
            refused += report.refused
    if refused:
        lines = "\n".join(refused)
        raise StackError(f"{lines}\nNothing was changed: Memlane keeps running as it was.")


def _refused_index(settings: Settings, layout: Layout) -> list[str]:
    """The reason why the running database has no vector index for the settings, if it has none."""
    env = environment(settings, layout, running_servers(settings, layout))
    argv = (sys.executable, "-m", "pipeline.migrate", "--check-index")
    done = run_to_end(Command(argv, env, cwd=PROJECT_ROOT))
    return done.stdout.strip().splitlines()[-1:] if done.returncode == REFUSED else []


def _detach(layout: Layout, programs: Path | None) -> subprocess.Popen[bytes]:
    """Start the supervisor in its own session, so that it survives the end of the terminal."""
    chosen = ["--programs", str(programs.resolve())] if programs else []
    with layout.log_file("supervisor").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "deploy.stack", "supervise", *chosen],
            env=inherited_environment() | {"MEMLANE_DATA_DIR": str(layout.root)},
            cwd=PROJECT_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _await_healthy(layout: Layout, supervisor: subprocess.Popen[bytes] | None, brief: bool) -> int:
    """Wait for a supervisor: `supervisor`, which we started, or (None) one that already runs."""
    wait_until(
        lambda: bool(_healthy(layout, supervisor)) or not _alive(layout, supervisor), UP_WITHIN_S
    )
    if state := _healthy(layout, supervisor):
        print(short(layout, state) if brief else banner(layout, state), end="")
        return 0
    last = read(layout)
    if supervisor is not None and last is not None and last.supervisor.pid != supervisor.pid:
        last = None  # of another supervisor
    print(explain(layout, last), file=sys.stderr)
    return 1


def _alive(layout: Layout, supervisor: subprocess.Popen[bytes] | None) -> bool:
    # ALREADY_RUNNING: another `up` was faster; its stack serves as well.
    code = ALREADY_RUNNING if supervisor is None else supervisor.poll()
    return is_running(layout) if code == ALREADY_RUNNING else code is None


def _healthy(layout: Layout, supervisor: subprocess.Popen[bytes] | None) -> State | None:
    state = _current(layout)
    if state is None or state.phase is not Phase.HEALTHY:
        return None
    # While our supervisor runs, the state of another one does not count: ours may take over.
    pid = state.supervisor.pid
    if supervisor is not None and supervisor.poll() is None and pid != supervisor.pid:
        return None
    return state


def _current(layout: Layout) -> State | None:
    """State of the supervisor that runs now; None if the file is an earlier one's."""
    state = read(layout)
    who = state.supervisor.identity() if state else None
    return state if who is not None and alive(who) else None


def explain(layout: Layout, state: State | None) -> str:
    """The reason why the stack did not start, and the end of the log with details.

    `state`: state of the failed supervisor; None if it wrote none.
    """
    if state is None or not state.failure:
        reason, process = "the supervisor ended early", "supervisor"
    elif state.failed_process is None:
        return f"Memlane did not start. {state.failure}"
    else:
        reason, process = state.failure, state.failed_process
    after = state.log_sizes.get(process, 0) if state else 0
    tail = "\n".join(f"  {line}" for line in layout.log_tail(process, after=after))
    return f"Memlane did not start: {reason}\n\nThe end of {layout.log_file(process)}:\n{tail}"


def run(
    settings: Settings,
    layout: Layout,
    saved: SavedSettings,
    programs: Mapping[str, tuple[str, ...]],
    *,
    sure: bool = False,
) -> int:
    """Start the stack in the foreground, for systemd and containers; 1 if it fails.

    Its environment counts, and is saved; but a model is replaced by the rules only if `sure`.
    """
    layout.create()
    change = SettingsChange.of(settings, layout, saved, None, [])
    if change.downgrades and not change.agreed(sure=sure):
        return 1

    def healthy(state: State) -> None:
        saved.write(saved.current(settings))
        print(banner(layout, state, show_key=False), end="", flush=True)

    try:
        state = supervise(settings, layout, programs, foreground=True, on_healthy=healthy)
    except AlreadyRunning as error:
        print(error, file=sys.stderr)
        return ALREADY_RUNNING
    if state.phase is Phase.FAILED:
        print(explain(layout, state), file=sys.stderr)
        return 1
    return 0


def supervise_quietly(
    settings: Settings, layout: Layout, programs: Mapping[str, tuple[str, ...]]
) -> int:
    """The detached process behind `up`, which prints nothing."""
    try:
        state = supervise(settings, layout, programs)
    except AlreadyRunning:
        return ALREADY_RUNNING
    return int(state.phase is Phase.FAILED)


def down(layout: Layout) -> int:
    """Stop the stack and all its processes. Returns 0 also if nothing runs."""
    state = read(layout)
    if not is_running(layout):
        ended = end_leftovers(state)
        end_backends(layout.root)
        names = ", ".join(ended)
        print(f"Stopped what was left over: {names}." if ended else "Nothing is running.")
        return 0
    state = _settled(layout)
    who = state.supervisor.identity() if state else None
    if state is None or who is None:
        if not is_running(layout):  # it has just ended by itself
            return down(layout)
        raise StackError(f"a supervisor holds {layout.lock}, but does not say who it is")
    send(who, signal.SIGTERM)
    if not wait_gone([who], DOWN_WITHIN_S):
        print("Memlane is down.")
        return 0
    send(who, signal.SIGKILL)
    children = (read(layout) or state).survivors().values()
    for child in children:
        send(child, signal.SIGKILL)
    wait_gone([who, *children], DOWN_WITHIN_S)
    end_backends(layout.root)
    print(f"Memlane did not stop within {DOWN_WITHIN_S:.0f} s: it was ended by force.")
    return 0


def _settled(layout: Layout) -> State | None:
    """State of the running supervisor, which writes it shortly after it has the lock."""
    wait_until(lambda: bool(_current(layout)) or not is_running(layout), DOWN_WITHIN_S)
    return _current(layout)


def reset(layout: Layout, *, sure: bool) -> int:
    """Stop the stack and delete all that it wrote. Asks first, unless `sure`."""
    paths = layout.written_files()
    if not paths:
        print(f"There is nothing in {layout.root}.")
        return 0
    print(LOST.format(root=layout.root))
    question = "Delete all of it? Type yes: "
    if not sure and (not sys.stdin.isatty() or input(question) != "yes"):
        unasked = command_line("reset", "--yes")
        print(f"Nothing was deleted. Without a terminal: {unasked}", file=sys.stderr)
        return 1
    code = down(layout)
    layout.delete()
    print(f"Deleted: {', '.join(path.name for path in paths)}.")
    if left := sorted(path.name for path in layout.root.iterdir()):
        print(f"Left in {layout.root}, not written by the stack: {', '.join(left)}.")
    return code


def status(layout: Layout) -> int:
    """Print one line for each process. Returns 0 if a supervisor runs, else 3."""
    state = read(layout)
    running = is_running(layout)
    if state is None or not (running or state.survivors()):
        print("Nothing is running.")
        return 3
    print(f"{state.url}  {state.phase if running else 'without supervisor'}  {layout.root}")
    print(f"{'NAME':<12}{'PID':>8}  {'STATE':<11}{'RESTARTS':>9}{'RSS MB':>8}")
    for name, note in {"supervisor": state.supervisor, **state.processes}.items():
        print(_line(name, note))
    return 0 if running else 3


def _line(name: str, note: ProcessNote) -> str:
    who = note.identity()
    if who is None or not alive(who):
        state = "gone" if who else note.state
        return f"{name:<12}{'-':>8}  {state:<11}{note.restarts:>9}{'-':>8}"
    state = "running" if name == "supervisor" else note.state
    rss = rss_mb(who.pid)
    size = "-" if rss is None else f"{rss:.0f}"
    return f"{name:<12}{who.pid:>8}  {state:<11}{note.restarts:>9}{size:>8}"


def logs(
    layout: Layout,
    names: list[str],
    *,
    lines: int,
    follow: bool,
    pretty: bool = False,
    event_id: str | None = None,
) -> int:
    """Print the end of all logs, or of the named ones; with `follow` until Ctrl-C.

    `pretty`: one short line each, merged by time. `event_id`: so, and all lines of this event.
    """
    if pretty or event_id:
        rows = merged(layout, names, lines=lines, event_id=event_id)
        print("\n".join(rows) or "No line.")
        return int(not rows)
    files = sorted(layout.logs.glob("*.log")) if not names else [*map(layout.log_file, names)]
    missing = [file.stem for file in files if not file.exists()]
    if missing or not files:
        print(f"No log of {', '.join(missing) or 'anything'} in {layout.logs}.", file=sys.stderr)
        return 1
    try:
        # tail is on every system that has make, and follows growing files.
        arguments = ["-v", "-n", str(lines), *(["-F"] if follow else [])]
        return subprocess.run(["tail", *arguments, *map(str, files)], check=False).returncode
    except KeyboardInterrupt:
        return 0
