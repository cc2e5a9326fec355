"""The mode of a batch: the one that its adds or its project ask for, lowered by budgets."""

from __future__ import annotations

from pipeline.accounting.costs import Costs
from pipeline.domain.errors import BudgetExceeded
from pipeline.domain.lanes import Batch
from pipeline.domain.modes import Budgets, ChosenMode, CostLimit, Mode, Spent, Use, lowered, uses
from pipeline.domain.stage_outputs import Extracted, read_if_any
from pipeline.domain.tenants import ProjectId
from pipeline.ingest.ports import IngestStores
from pipeline.models.recorded import recorded_batch


async def choose_mode(batch: Batch, ledger: IngestStores) -> ChosenMode:
    """The mode of a batch of adds, chosen once, before its first model call.

    A replay of a scope has no lower mode, because its result replaces the memories of the scope. A
    replay with recorded answers has the mode of the recording.

    Errors: BudgetExceeded for the replay of a scope.
    """
    if batch.override.recorded:
        extracted = read_if_any(await recorded_batch(batch, ledger), Extracted)
        return (extracted and extracted.mode) or ChosenMode()
    if batch.mode is Mode.TURNS:
        return ChosenMode(Mode.TURNS)
    limits = await _uses(batch, ledger)
    if batch.payer == batch.scope.project_id:
        return lowered(batch.mode, limits)
    _require_budget(limits)
    return ChosenMode(batch.mode)


async def mode_of_started(batch: Batch, ledger: IngestStores) -> ChosenMode | None:
    """The mode APPEND for a batch whose budget is used up since its facts were extracted, or None.

    Errors: BudgetExceeded for the replay of a scope.
    """
    if batch.override.recorded:
        return None
    limits = await _uses(batch, ledger)
    if not limits or limits[0].share < 1:
        return None
    if batch.payer != batch.scope.project_id:
        _require_budget(limits)
    return ChosenMode(Mode.APPEND, limits[0].reason)


async def require_budget(batch: Batch, ledger: IngestStores) -> None:
    """Check the budgets of an operation that needs a model. Errors: BudgetExceeded."""
    if not batch.override.recorded:
        _require_budget(await _uses(batch, ledger))


def _require_budget(limits: list[Use]) -> None:
    if limits and limits[0].share >= 1:
        raise BudgetExceeded(f"{limits[0].limit[0].upper()}{limits[0].limit[1:]} are used up.")


async def _uses(batch: Batch, ledger: IngestStores) -> list[Use]:
    """The use of the budgets of the batch's project and user."""
    if batch.payer is None:
        return []
    return await budget_uses(batch.payer, batch.scope.user_id, batch.budgets, ledger.costs)


async def budget_uses(
    project_id: ProjectId, user_id: str | None, budgets: Budgets, costs: Costs
) -> list[Use]:
    """The use of the budgets of a project and of one of its users, the most used first."""
    spent: dict[str, tuple[CostLimit, Spent]] = {}
    if (budget := budgets.project) is not None:
        spent["project"] = budget, await costs.spent(project_id, None, budget.per)
    if user_id and (budget := budgets.user) is not None:
        spent["user"] = budget, await costs.spent(project_id, user_id, budget.per)
    return uses(spent)
