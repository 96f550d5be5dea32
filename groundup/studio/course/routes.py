"""The addresses of the page Course.

GET  /api/course/begin                          the progress, and which task is the current one; or why there is none
POST /api/course/start                          a course folder in the studio's folder
POST /api/course/watch {task}                   a session that grades the task at every save
GET  /api/course/events?session=…               what has become of it
POST /api/course/choose {session, task}         watch another task
POST /api/course/again {session}                grade although nothing was saved
GET  /api/course/task?task=…                    a task: its week's page, its hints
POST /api/course/hint, /skip {task}             as `groundup learn` does
POST /api/course/solution {task, reveal}        the difference from the project's function
GET  /api/course/figure?name=…                  a figure of a week's page
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from groundup.studio.answers import Refused, action, question
from groundup.studio.events import stream

if TYPE_CHECKING:
    from groundup.course.learner.workspace import Workspace
    from groundup.studio.app import Studio

PAGE = "course"


def routes(studio: Studio) -> list[Route]:
    """The page's routes."""

    def begin(request: Request) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        try:
            learner = exercise_page.workspace(studio.folder)
        except (ValueError, OSError) as error:
            return {"folder": None, "said": str(error), "where": str(studio.folder)}
        return {"folder": str(learner.folder), "progress": exercise_page.progress(learner)}

    def start(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        learner = exercise_page.begin(studio.folder)
        return {"folder": str(learner.folder), "progress": exercise_page.progress(learner)}

    def watch(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.course import exercise_page
        from groundup.studio.course.watching import Watch

        learner = exercise_page.workspace(studio.folder)
        return {"session": studio.sessions.open(PAGE, Watch(learner, exercise_page.task_of(learner, _name(body))))}

    def choose(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        session = studio.sessions.get(PAGE, body.get("session"))
        session.choose(exercise_page.task_of(session.workspace, _name(body)))
        return {}

    def again(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        studio.sessions.get(PAGE, body.get("session")).again()
        return {}

    async def events(request: Request) -> Response:
        session = request.query_params.get("session", "")
        return stream(request, studio.sessions.get(PAGE, session).latest.values(), session)

    return [
        Route("/api/course/begin", question(begin)),
        Route("/api/course/start", action(start), methods=["POST"]),
        Route("/api/course/watch", action(watch), methods=["POST"]),
        Route("/api/course/events", events),
        Route("/api/course/choose", action(choose), methods=["POST"]),
        Route("/api/course/again", action(again), methods=["POST"]),
        Route("/api/course/figure", _figure),
        *_of_a_task(lambda: _workspace(studio)),
    ]


def _of_a_task(find_workspace: Callable[[], Workspace]) -> list[Route]:
    """The routes that need no session."""

    def task(request: Request) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        folder = find_workspace()
        return exercise_page.shown(folder, exercise_page.task_of(folder, request.query_params.get("task")))

    def hint(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        folder = find_workspace()
        return exercise_page.take_hint(folder, exercise_page.task_of(folder, _name(body)))

    def skip(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        folder = find_workspace()
        following = exercise_page.leave_out(folder, exercise_page.task_of(folder, _name(body)))
        return {"following": following, "progress": exercise_page.progress(folder)}

    def answer(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        folder = find_workspace()
        judged = exercise_page.answer(
            folder, exercise_page.task_of(folder, _name(body)), str(body.get("line")), str(body.get("kind"))
        )
        return {**judged, "progress": exercise_page.progress(folder)}

    def solution(request: Request, body: dict[str, Any]) -> dict[str, Any]:
        from groundup.studio.course import exercise_page

        folder = find_workspace()
        return exercise_page.solution(folder, exercise_page.task_of(folder, _name(body)), body.get("reveal") is True)

    return [
        Route("/api/course/task", question(task)),
        Route("/api/course/hint", action(hint), methods=["POST"]),
        Route("/api/course/skip", action(skip), methods=["POST"]),
        Route("/api/course/answer", action(answer), methods=["POST"]),
        Route("/api/course/solution", action(solution), methods=["POST"]),
    ]


def _workspace(studio: Studio) -> Workspace:
    from groundup.studio.course import exercise_page

    return exercise_page.workspace(studio.folder)


def _name(body: dict[str, Any]) -> str | None:
    name = body.get("task")
    if name is not None and not isinstance(name, str):
        raise Refused("a task is named by a text, such as 1.1")
    return name


def _figure(request: Request) -> Response:
    from groundup.studio.course import week_text

    path = week_text.figure(request.query_params.get("name", ""))
    if path is None:
        raise Refused("there is no such figure", 404)
    return FileResponse(path, media_type="image/svg+xml")
