"""The page Benchmarks: a results file with hovering and filtering, and two files compared.

recorded_results
             which files there are to choose from
reading      a file of `groundup bench`, `race` or `profile`, or a GPU report, as one kind of Results
gpu          the same of a GPU report
page_document
             what the page shows of a file: its points, its curves, and what can be filtered
comparing    what the page shows of two files
routes       the page's addresses
static/      page.html, page.js and page.css; filters.js, figures.js and tables.js are parts of page.js
"""
