"""The page Benchmarks: your own race or bench beside a recorded one; all the rest is the HTML report.

desk         the files to choose from, read by the strict reader of their kind, and their reports
side_by_side what the page shows of one file or two: the bars of each work, and the comparison
routes       the page's addresses; static/ has page.html, page.js and page.css
"""
