"""groundup.stages: the stages that a command works on, and why some cannot run."""

import pytest

from groundup.stages import stages_for
from shared import contract


@pytest.mark.parametrize("choice", ["1,2", "2, 1", "stage1,numpy", "1,1,2"])
def test_stages_are_chosen_by_number_or_name_and_raced_in_order(choice: str) -> None:
    stages, unavailable = stages_for(choice)
    assert [stage.number for stage in stages] == [1, 2]
    assert unavailable == {}


def test_stages_that_cannot_run_are_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> contract.Stage:
        name = contract.stage_name(name)
        if name in ("stage3_c", "stage4_numba_cuda"):
            raise contract.StageUnavailable(f"{name} needs something")
        return contract.load_stage(name)

    monkeypatch.setattr("groundup.stages.load_stage", load)
    stages, unavailable = stages_for(None)
    assert [stage.number for stage in stages] == [1, 2]
    assert unavailable["stage3_c"] == "stage3_c needs something"
    with pytest.raises(contract.StageUnavailable, match="stage3_c needs something"):
        stages_for("1,3")


def test_no_stage_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="expected names or numbers"):
        stages_for(" , ")
