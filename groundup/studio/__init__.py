"""The studio: what is better seen than read, in a browser on this machine. `groundup studio` starts it.

server      finds a port, answers until Ctrl-C, opens the browser
impatient   a connection that waits for a request only so long
app         the application: all routes, and Studio, what they share
security    who is answered: Host, Origin, key, size of what comes in; the headers of every answer
frame       the document around every page
answers     questions and actions as JSON; errors as sentences
events      what changes while it is watched: server-sent events
sessions    what belongs to one tab, ended when the tab is gone
export      a page as one HTML file without a server
prepared_stages
            the stages, prepared in the background for what a page is about to ask of them
static/     the style sheet and the JavaScript that several pages use

A folder for each page, with its routes, the model behind it, and its own JavaScript in static/:

playground/ a small network that learns while its reader watches
digits/     a drawing, and how the network reads it on every stage
convolution/
            a pixel of a map, with its window, its filter and its sum on every stage
race/       four stages train at once, and all of them read a drawing
floors/     a function on four stages side by side, with recorded times, and run here
kernel/     a kernel walked through, thread by thread
course/     the learner's exercises, graded at every save
benchmarks/ your own race or bench beside a recorded one, and its HTML report
runs/       the runs, their curves over each other, their layers and their mistakes
"""
