"""progress.toml: written as it is read, and refused with its place where it was edited wrongly."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundup.course.learner import record

entries = st.builds(
    record.TaskRecord,
    state=st.sampled_from(record.STATES),
    on=st.sampled_from(["", "2026-11-22"]),
    digest=st.sampled_from(["", "0123456789abcdef"]),
    hints=st.integers(0, 3),
    revealed=st.booleans(),
)


@given(st.dictionaries(st.sampled_from(["1.1", "1.2", "10.2", "checkpoint 1"]), entries))
def test_progress_comes_back_as_it_was_saved(saved: dict[str, record.TaskRecord]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "progress.toml"
        record.save(record.LearnersRecord("1.2", saved), path)
        back = record.load(path)
    assert back.current == "1.2"
    assert back.entries == {name: entry for name, entry in saved.items() if entry != record.TaskRecord()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("current = 1.1", 'current is 1.1, expected text in quotation marks, such as "1.1"'),
        ("a = " + "[" * 50_000, "recursion"),
        ('tasks = {"" = {hints = 1}}', "task : expected the name of a task, such as 1.1"),
        ('tasks = {"' + "1." * 3000 + '" = {}}', "expected the name of a task, such as 1.1"),
        ("current = " + "9" * 400, "current is 99999.*…, expected text"),
        ("[passed]\n", "passed is unknown here, expected current or tasks"),
        ('[tasks."1.1"]\npassed = true', "task 1.1: passed is unknown here, expected state or on or digest"),
        ("current = ", "Invalid value"),
        ('current = "1.1"\n[tasks."1.1"]\nstate = "done"', "task 1.1: state is 'done', expected one of"),
        ('current = "1.1"\n[tasks."1.1"]\nhints = "2"', 'hints of task 1.1 is "2", expected a whole number'),
        ('current = "1.1"\n[tasks."1.1"]\nhints = -5', "task 1.1: hints is -5, expected 0 to 3"),
        ('current = "1.1"\n[tasks."1.1"]\nhints = 4', "task 1.1: hints is 4, expected 0 to 3"),
        ("current = true", "current is true, expected text"),
        ("current = ['1.1']", "current is a list, expected text"),
        ('current = "1.1"\n[tasks."1.1"]\nrevealed = 1', "revealed of task 1.1 is 1, expected true or false"),
        ('current = "1.1"\ntasks = {"1.1" = 3}', "task 1.1 is 3, expected entries of its own"),
        ('current = "1.1"\ntasks = 3', "tasks is 3, expected entries of its own, below a line in brackets"),
    ],
)
def test_a_progress_file_that_was_edited_wrongly_is_told_and_left_alone(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "progress.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as raised:
        record.load(path)
    assert str(path) in str(raised.value)
    assert path.read_text(encoding="utf-8") == text


def test_progress_is_readable_text(tmp_path: Path) -> None:
    path = tmp_path / "progress.toml"
    passed = record.TaskRecord("passed", "2026-11-22", "0123456789abcdef", 2)
    record.save(record.LearnersRecord("1.2", {"10.1": passed, "2.1": record.TaskRecord("skipped", "2026-11-22")}), path)
    assert path.read_text(encoding="utf-8") == record.HEADING + (
        'current = "1.2"\n\n[tasks."2.1"]\nstate = "skipped"\non = "2026-11-22"\n\n'
        '[tasks."10.1"]\nstate = "passed"\non = "2026-11-22"\ndigest = "0123456789abcdef"\nhints = 2\n'
    )


def test_a_progress_file_of_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "progress.toml"
    path.write_text(f'current = "{"a" * 3_000_000}"')
    with pytest.raises(ValueError, match=r"progress\.toml: 3,000,012 bytes, more than the 250,000 that are read"):
        record.load(path)
