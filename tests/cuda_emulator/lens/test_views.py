"""The lens's views say what the profile says: in the terminal, on the page and in the pictures."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from cuda_emulator.lens import page, page_script, svg, terminal, wording
from cuda_emulator.lens.annotations import annotate, problems
from cuda_emulator.lens.elements import element_map
from cuda_emulator.lens.pictures import access_map, bank_map, timeline
from cuda_emulator.lens.profile import Phase, Request
from cuda_emulator.lens.profiling import ShownProfile
from cuda_emulator.lens.roofline_chart import drawable, roofline_chart
from cuda_emulator.lens.summary import figures, ratio, verdict
from cuda_emulator.lens.timelines import repeats
from cuda_emulator.trace import NotTraced
from tests.cuda_emulator.lens import lens_profiles as made

SVG = "{http://www.w3.org/2000/svg}"
every_profile = pytest.mark.parametrize("name", sorted(made.EVERY))


def squeezed(text):
    """Without line breaks and tags, to look for sentences in what a view wraps."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def texts(picture):
    return [each.text for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def boxes(picture, kind):
    return [each for each in ElementTree.fromstring(picture).iter(f"{SVG}rect") if each.get("class") == kind]


@every_profile
def test_the_report_fits_a_hundred_columns_and_shows_every_line_of_the_source(name):
    profile = made.EVERY[name]()
    lines = terminal.text(profile).splitlines()
    assert max(map(len, lines)) <= terminal.WIDTH
    for number, line in enumerate(profile.source[0][2], profile.source[0][1]):
        assert f"{number:>6} | {line}".rstrip() in lines


@every_profile
def test_a_terminal_of_sixty_columns_gets_every_number_whole(name):
    profile = made.EVERY[name]()
    for shown in (terminal.report(profile), terminal.comparison(profile, profile)):
        lines = terminal.plain(shown, 60).splitlines()
        assert max(map(len, lines)) <= 60
        assert not [line for line in lines if "…" in line]


@every_profile
def test_report_and_page_show_the_numbers_of_every_access(name):
    profile = made.EVERY[name]()
    report, shown = squeezed(terminal.text(profile)), squeezed(page.html([profile]))
    for access in profile.accesses:
        numbers = [access.requests, access.lanes]
        numbers += (
            [access.sectors, access.bytes_used] if access.space == "global" else [access.bytes_used, access.wavefronts]
        )
        row = " ".join(f"{each:,}" for each in numbers)
        assert f"{access.site.line} {access.kind} {access.array} {access.space} {row}" in report
        if access.space == "global":
            assert f"{access.sectors / access.requests:g} sectors/request" in shown
    for each in figures(profile):
        if each.value is not None:
            assert f"{each.name} {each.text}" in report


def test_main_figures_are_of_the_whole_launch():
    profile = made.coalesced()
    by_name = {each.name: each for each in figures(profile)}
    assert by_name["global memory traffic"].value == 2 * 16 * 32 * 256  # 4 of 1,024 blocks were traced
    assert by_name["global memory traffic"].text == "256 KiB"
    assert by_name["floating-point operations"].value == 128 * 256
    assert by_name["sectors per global request"].value == 4
    assert by_name["operations per byte of global traffic"].value == profile.intensity == 0.125
    assert by_name["occupancy"].text == "50 %"


@pytest.mark.parametrize(
    ("profile", "line", "remark"),
    [
        (made.coalesced(), 13, "load a: 4 sectors/request (100 %); 4 requests"),
        (made.coalesced(), 12, "branch: 25 % of warps diverge (1 of 4 evaluations)"),
        (made.strided(), 12, "load a: 32 sectors/request (12.5 %), 4 would do; 1 request"),
        (made.strided(2), 12, "load a: 8 sectors/request (50 %), 4 would do; 1 request"),
        (made.strided(0), 12, "load a: 1 sector/request, one address for all lanes (broadcast); 1 request"),
        (made.strided(1, 8), 12, "load a: 8 sectors/request (100 %); 1 request"),
        (made.conflicting(), 14, "load tile: 32-way bank conflict; 32 requests"),
        (made.conflicting(33), 14, "load tile: no bank conflict; 32 requests"),
        (made.conflicting(), 13, "barrier: 1 time by every warp"),
        (made.racing(), 14, "Race on shared tile[0, 5]: read after write"),
        (made.faulty(), 11, "not traced: a slice & its copy"),
    ],
)
def test_a_line_is_annotated_with_what_it_does(profile, line, remark):
    assert remark in [note.text for note in annotate(profile)[made.FILE, line].notes]
    assert remark in squeezed(terminal.text(profile))


def test_a_device_function_called_twice_is_remarked_on_once():
    profile = made.strided()
    second = replace(profile.accesses[0], site=replace(profile.accesses[0].site, number=5))
    profile.accesses.append(second)
    (note,) = annotate(profile)[made.FILE, 12].notes
    assert note.text.endswith("1 request, in each of 2 calls")
    assert page.html([profile]).count("<svg") == 3  # one access map with its element map, and the timeline


def test_two_accesses_of_a_line_to_one_array_are_told_apart_by_their_index():
    profile = made.strided()
    first = profile.accesses[0]
    profile.accesses.append(replace(first, site=replace(first.site, number=5, text="a[i + 1]")))
    remarks = [note.text.partition(":")[0] for note in annotate(profile)[made.FILE, 12].notes]
    assert {f"load {first.site.text}", "load a[i + 1]"} <= set(remarks)
    for view in (terminal.text(profile).partition("Accesses of the traced")[2], page.html([profile])):
        for text in (first.site.text, "a[i + 1]"):
            assert f"12 load {text} global" in squeezed(view)


def test_shares_of_the_traffic_add_up():
    notes = annotate(made.looping())
    assert math.isclose(sum(each.traffic for each in notes.values()), 1)
    assert math.isclose(sum(each.passes for each in notes.values()), 1)


def test_a_race_names_both_lines_and_threads_before_the_source():
    for shown in (terminal.text(made.racing()), page.html([made.racing()])):
        said = squeezed(shown)
        first = said.index("Race on shared tile[0, 5]: read after write")
        assert "thread (5, 0) of block 0 writes it in line 12: tile[y, x]" in said
        assert "thread (0, 5) of block 0 reads it in line 14: tile[x, y]" in said
        assert "992 pairs of threads like this" in said
        assert "no barrier synchronises" in said  # of the race between blocks
        assert "thread (8, 1) of block 0 reads it in line 14, before any thread of the block wrote it" in said
        assert first < said.index("@cuda.jit")


def test_a_fault_comes_first_and_says_that_the_counts_end_there():
    (problem,) = problems(made.faulty())
    assert problem.lines == ((made.FILE, 12),)
    report = terminal.text(made.faulty())
    assert report.index("IndexError: a[992] is outside a") < report.index("Source")
    assert "the counts are those up to the error" in squeezed(report)


def test_what_was_sampled_not_traced_and_not_judged_is_said():
    for shown in (terminal.text, lambda profile: page.html([profile])):
        sampled, partial = squeezed(shown(made.coalesced())), squeezed(shown(made.faulty()))
        assert "4 of 1,024 blocks: 0, 341, 682, 1023" in sampled
        assert "counts of these blocks times 256" in sampled
        assert "An estimate, not a measurement, for H100" in sampled
        assert "compare patterns rather than counts" in sampled
        assert "a slice &" in partial
        assert "overlaps b" in partial


def test_a_clean_report_is_not_called_clean_without_reservation_where_something_was_not_traced():
    profile = replace(made.coalesced(), not_traced=[NotTraced(made.FILE, 13, "a[:]", "a slice")])
    for shown in (terminal.text(profile), page.html([profile])):
        assert "in the traced blocks, except what is listed" in squeezed(shown)


def test_names_cannot_become_markup():
    report, shown = terminal.text(made.faulty()), page.html([made.faulty()])
    assert "[red]n[/red] = 7" in report
    assert "# [bold]" in report
    assert shown.count("<script") == 1  # the page's own
    assert "<b>a</b>" not in shown
    assert "<x>" not in shown
    assert "&lt;x&gt;&amp;&#x27;&quot;" in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


@every_profile
def test_the_page_loads_nothing(name):
    profile = made.EVERY[name]()
    for shown in (page.html([profile]), page.html([profile, profile]), page.embedded(profile)):
        own = shown.replace(f"<script>{page_script.SCRIPT}</script>", "")
        assert not re.search(r"<(script|link|img|iframe|object)|\b(src|href)=|@import|url\(", own)
        assert "://" not in shown.replace('xmlns="http://www.w3.org/2000/svg"', "")


@every_profile
def test_every_picture_is_well_formed_and_tells_what_it_shows(name):
    profile = made.EVERY[name]()
    pictures = re.findall(r"<svg.*?</svg>", page.html([profile]), re.DOTALL)
    assert len(pictures) == 2 * len(profile.accesses) + bool(profile.phases) + len(drawable([profile]))
    for each in pictures:
        root = ElementTree.fromstring(each)
        title, description = root.find(f"{SVG}title").text, root.find(f"{SVG}desc").text
        assert root.get("role") == "img"
        assert root.get("aria-label") == f"{title}. {description}"
        assert len(description) > 30


@pytest.mark.parametrize(("stride", "sectors"), [(0, 1), (1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_an_access_map_draws_each_sector_once_and_each_lane(stride, sectors):
    one = made.request([stride * i for i in range(32)])
    picture = access_map(one, "load a", "a")
    assert len(boxes(picture, "lens-fetched")) == sectors + 1  # one in the legend
    assert len(boxes(picture, "lens-used")) == 32 + 1
    used = 4 if stride == 0 else 128
    assert any(f"{used} B used of" in each for each in texts(picture))
    assert f"<title>lane 31: a[{31 * stride}], byte {124 * stride:,}</title>" in picture
    assert float(ElementTree.fromstring(picture).get("width")) <= 1200


def test_an_access_map_leaves_out_what_lies_between_far_sectors():
    near, far = (access_map(made.request([step * i for i in range(32)]), "load a") for step in (8, 32 * 1024))
    assert "<circle" not in near
    assert far.count("<circle") == 3 * 31


def test_an_access_map_says_how_many_sectors_it_does_not_draw():
    wide = Request(0, 0, tuple(range(32)), tuple(128 * i + 24 for i in range(32)), 16)
    assert "and 32 sectors more, not drawn" in texts(access_map(wide, "load a"))


@pytest.mark.parametrize(("stride", "ways"), [(0, 1), (1, 1), (2, 2), (3, 1), (16, 16), (32, 32), (33, 1)])
def test_a_bank_map_shows_the_conflict_as_number_and_as_bar(stride, ways):
    picture = bank_map(made.request([stride * i for i in range(32)]), "load tile", "tile")
    expected = "no conflict" if ways == 1 else f"{ways}-way conflict"
    assert texts(picture)[0].startswith(expected)
    assert bool(boxes(picture, "lens-hot")) == (ways > 1)
    assert str(ways) in texts(picture)
    if stride == 0:
        assert "32x" in texts(picture)


def test_a_bank_map_of_eight_byte_elements_is_of_a_half_warp():
    picture = bank_map(made.request(range(32), size=8), "load tile")
    assert texts(picture)[0].startswith("no conflict")
    assert "8-byte elements go half warp by half warp; here lanes 0-15" in texts(picture)


@pytest.mark.parametrize(
    ("indices", "columns", "cells", "said"),
    [
        (range(32), 64, 32, "neighbouring lanes take neighbouring elements"),
        ([64 * lane for lane in range(32)], 64, 32, "neighbouring lanes take elements of different rows"),
        ([8 * lane for lane in range(32)], None, 32, "neighbouring lanes share elements, or take distant ones"),
        ([7] * 32, None, 1, "all lanes take the same element"),
    ],
)
def test_an_element_map_has_each_element_once_with_its_lanes(indices, columns, cells, said):
    picture = element_map(made.request(list(indices), columns=columns), "load a", "a", (), (16, 2, 1), "reads")
    assert texts(picture)[0] == said
    assert len(boxes(picture, "lens-used")) == cells
    if cells == 32:
        assert "lane 17, thread (1, 1): reads a[" in picture
    else:
        assert "lane 0, thread (0, 0) and lanes 1-31: reads a[7]" in picture


def test_the_warp_and_the_round_that_a_figure_shows_can_be_chosen():
    profile = made.strided()
    one = profile.accesses[0].example
    examples = [replace(one, warp=warp, round=turn) for warp in (0, 3) for turn in (0, 2, 7) if (warp, turn) != (3, 7)]
    several = replace(profile.accesses[0], example=replace(one, warp=3, round=2), examples=tuple(examples))
    shown = page.html([replace(profile, accesses=[several])])
    assert shown.count("<svg") == 2 * 5 + 1
    assert re.findall(r'<input type="radio" name="(.)" class="(..)" checked="checked">', shown) == [
        ("w", "w1"),
        ("r", "r1"),
    ]
    assert len(re.findall(r'class="variant w\d r\d', shown)) == 6
    assert shown.count('class="variant w1 r1 costliest"') == 1
    assert "Warp 3 makes no request in round 7." in shown


def test_two_kernels_share_a_roofline_and_their_pictures_have_the_whole_width():
    first, second = made.coalesced(), replace(made.coalesced(), kernel="other")
    shown = page.html([first, second])
    assert shown.count("Roofline of H100") >= 1
    assert "kernel: 0.125 operations for each byte" in shown
    assert "other: 0.125 operations for each byte" in shown
    beside = shown[shown.index('class="pair"') : shown.index("Pictures of kernel")]
    assert "<svg" not in beside
    assert shown.index("Pictures of kernel") < shown.index("Pictures of other")


def test_a_roofline_has_the_peaks_and_the_kernel():
    shown = texts(roofline_chart([made.coalesced()]))
    assert {"float32: 66.9 Tflop/s", "float64: 33.5 Tflop/s", "memory: 3.35 TB/s", "kernel"} <= set(shown)
    assert not drawable([made.strided(), made.empty()])


def test_the_pages_policy_names_its_script():
    assert f"script-src &#x27;{page_script.HASH}&#x27;" in page.html([made.empty()])


def test_a_timeline_draws_phases_that_repeat_once():
    profile = made.looping(16)
    assert [(len(group), times) for group, times in repeats(profile.phases)] == [(2, 16), (1, 1)]
    shown = texts(timeline(profile))
    assert "16 times, until 31" in shown
    assert shown.count("64") == 1
    assert {"line 12: load a", "line 13: store tile", "line 14: load tile", "line 15: store c"} <= set(shown)


def test_a_timeline_says_how_many_phases_it_does_not_draw():
    profile = replace(made.looping(), phases=[Phase(n, {0: n + 1}, 8) for n in range(40)])
    assert "26 later phases not drawn" in texts(timeline(profile))


def test_a_comparison_gives_the_ratio_of_the_main_figures():
    first, second = made.strided(), replace(made.coalesced(), kernel="other")
    pairs = {one.name: (one, other) for one, other in zip(figures(first), figures(second), strict=True)}
    assert ratio(*pairs["sectors per global request"]) == "1/8"
    assert verdict(*pairs["sectors per global request"]) == "better"
    assert verdict(*pairs["global memory traffic"]) == "worse"
    assert ratio(*pairs["races, uninitialised reads, faults"]) == ""
    said = squeezed(terminal.plain(terminal.comparison(first, second)))
    assert "sectors per global request 32 4 1/8 better" in said
    assert re.search(r"sectors per global request +32 +4 +1/8 +better", squeezed(page.html([first, second])))


def test_a_comparison_of_different_work_says_so():
    first = made.strided()
    for second, expected in ((made.strided(2), False), (replace(first, arguments=[("a", "float32 (8,)")]), True)):
        for shown in (terminal.plain(terminal.comparison(first, second)), page.html([first, second])):
            assert ("launched with different arguments" in squeezed(shown)) == expected


@pytest.mark.parametrize("number", [0, 3])
def test_a_page_refuses_what_does_not_fit(number):
    with pytest.raises(ValueError, match=f"profiles: one or two fit on a page, got {number}"):
        page.html([made.empty()] * number)


def test_a_page_is_written_whole(tmp_path):
    target = page.write([made.coalesced()], tmp_path / "new" / "lens.html")
    assert target.read_text(encoding="utf-8") == page.html([made.coalesced()])
    assert [each.name for each in target.parent.iterdir()] == ["lens.html"]


def test_a_notebook_shows_the_page_with_styles_that_stay_in_it():
    shown = page.embedded(made.coalesced())
    style = re.search(r"<style>(.*?)</style>", shown, re.DOTALL).group(1)
    for rule in re.sub(r"@media[^{]*\{", "", style).split("}"):
        selectors = rule.split("{")[0].strip()
        for each in filter(None, map(str.strip, selectors.split(","))):
            assert each.startswith((".lens", "svg.lens")), each


def test_the_profile_of_a_launch_prints_the_report_and_displays_the_page():
    profile = made.coalesced()
    shown = ShownProfile(**vars(profile))
    assert str(shown) == terminal.text(profile)
    assert terminal.plain(shown) == terminal.text(profile)
    assert shown._repr_html_() == page.embedded(profile)


def _luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first, second):
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("screen", [0, 1], ids=["light", "dark"])
def test_texts_and_marks_stand_out_from_what_is_behind_them(screen):
    palette = {name: both[screen] for name, both in svg.COLOURS.items()}
    for ink in ("ink", "quiet", "good"):
        assert _contrast(palette[ink], palette["ground"]) >= 4.5
        assert _contrast(palette[ink], palette["panel"]) >= 4.5
    assert _contrast(palette["on-used"], palette["used"]) >= 4.5
    assert _contrast(palette["on-hot"], palette["hot"]) >= 3  # beside it stands the number again, in ink
    for mark in ("used", "hot", "store", "edge"):
        assert _contrast(palette[mark], palette["ground"]) >= 3
    assert _contrast(palette["used"], palette["needed"]) >= 3
    assert _contrast(palette["used"], palette["fetched"]) >= 3


def test_a_standalone_picture_carries_its_colours():
    alone = svg.standalone(timeline(made.looping()))
    assert "--used:#0072B2" in ElementTree.fromstring(alone).find(f"{SVG}style").text


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (wording.extent((4, 1, 2)), "4 x 1 x 2"),
        (wording.thread(70, (32, 4, 2)), "thread (6, 2, 0)"),
        (wording.lanes((0, 2, 4)), "0, 2 and 4"),
        (wording.lanes(tuple(range(0, 32, 2))), "0, 2, 4, 6, 8 and 11 more"),
    ],
)
def test_threads_lanes_and_shapes_read_as_people_write_them(said, expected):
    assert said == expected
