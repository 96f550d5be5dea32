"""The page Course: the learner's exercises, graded at every save of a file in their own editor.

exercise_page
             the learner's folder, and what the page shows of it: progress, a task, hints, the solution
watching     looks at the file of a task and has it graded when it is saved
grading      the process that grades: `python -m groundup.studio.course.grading FOLDER TASK`
lens_pictures
             what the lens says of a kernel whose check of memory fails, with its pictures
week_text    the page of a week as HTML
routes       the page's addresses
static/      page.html, page.js and page.css; lists.js, verdict.js, matrix.js and detective.js
             are parts of page.js
"""
