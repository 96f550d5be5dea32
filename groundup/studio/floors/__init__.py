"""The page Floors: the same room on four stages side by side, with the measured speed of each function.

rooms        the rooms, and which functions stand beside each other
source       a function's text, found in the installed files: Python, C and kernels
underlying_code
             which C functions and kernels a Python function leads to
colouring    a text in coloured parts: Python and C
recorded_speeds
             the recorded speeds, from recorded.json
page_rows    what the page shows of a room
routes       the page's addresses
static/      page.html, page.js and page.css; code.js draws a function's text
"""
