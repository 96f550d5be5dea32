"""The page Floors: one function on four stages side by side, its recorded times, and a call of it here.

rooms        the rooms and their functions
source       a function's text, found in the installed files: Python, C and kernels; below.json: what lies below which
aligned      matching lines of several texts beside each other
colouring    a text in coloured parts: Python and C
columns      what the page shows of a function; recorded.json: recorded times, made by scripts/make_floors_speeds.py
running      a function called on all stages
routes       the page's addresses
static/      page.html, page.js and page.css; columns.js and numbers.js draw; code.js and code.css show a text
"""
