"""Files of a data directory: logs of limited size."""

from pathlib import Path

from deploy.stack.layout import Layout


def test_a_log_over_the_limit_is_moved_and_goes_on_empty(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.create()
    with layout.log_file("api").open("ab", buffering=0) as writer:
        writer.write(b"twelve bytes")
        layout.rotate_logs(most_bytes=10)
        writer.write(b"more")
        layout.rotate_logs(most_bytes=10)
    assert layout.log_file("api").read_bytes() == b"more"
    assert (layout.logs / "api.log.1").read_bytes() == b"twelve bytes"
