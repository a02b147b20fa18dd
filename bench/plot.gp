# One picture of a group of rows. Called by bench/run --plot with the variables
#   data    lines of: row, ratio, from, to, goal, stretch, "≥" or "≤"; separated by tabs; 0: no such bound
#   group   for the title
#   output  the picture
# Each row has a scale of its own: a bar for the median of the ratios, a whisker for the 95 % range of the true median,
# a line for the goal and one for the stretch goal.
set datafile separator "\t"
stats data using 2 nooutput
rows = int(STATS_records)
names = system("cut -f 1 '" . data . "'")
aims = system("cut -f 7 '" . data . "'")
field(row, column) = real(system(sprintf("sed -n %dp '%s' | cut -f %d", row, data, column)))
larger(a, b) = a > b ? a : b

# in pixels: the title, a panel for each row, the axis within a panel
width = 900
head = 62
panel = 100
height = head + rows * panel + 10
fromTop(y) = 1 - y / real(height) # from the top

set terminal svg size width, height font "DejaVu Sans,12" background "white"
set encoding utf8
set output output
set multiplot
set label 101 "redislock, " . group . ": ratio ours / reference" noenhanced at screen 0.5, screen fromTop(20) center font ",16"
set label 102 "bar: median of the ratios; whisker: where the true median is, with 95 % certainty" \
    at screen 0.5, screen fromTop(42) center font ",11" textcolor rgb "#555555"

set style fill solid 0.9 noborder
set border 1
set tics nomirror out
set xtics offset 0, 0.4 font ",11"
unset ytics
set yrange [-1 : 1]
unset key
set lmargin at screen 0.27
set rmargin at screen 0.97
do for [row = 1 : rows] {
    top = head + (row - 1) * panel
    set tmargin at screen fromTop(top + 30)
    set bmargin at screen fromTop(top + 74)
    ratio = field(row, 2)
    goal = field(row, 5)
    stretch = field(row, 6)
    set xrange [0 : 1.12 * larger(larger(field(row, 4), ratio), larger(goal, stretch))]
    set label 1 word(names, row) noenhanced at graph -0.02, graph 0.72 right
    set label 2 sprintf("%.2f", ratio) at graph -0.02, graph 0.26 right textcolor rgb "#1f5fa8" font ",13"
    if (goal > 0) {
        set arrow 1 from goal, graph 0 to goal, graph 1.02 nohead front linewidth 2 linecolor rgb "#c0392b"
        set label 3 sprintf("goal %s %g", word(aims, row), goal) at goal, graph 1.14 center \
            textcolor rgb "#c0392b" font ",11"
    }
    if (stretch > 0) {
        set arrow 2 from stretch, graph 0 to stretch, graph 1.36 nohead front linewidth 2 dashtype 2 \
            linecolor rgb "#2e7d32"
        set label 4 sprintf("stretch %g", stretch) at stretch, graph 1.5 center textcolor rgb "#2e7d32" font ",11"
    }
    plot data every ::(row - 1)::(row - 1) using ($2 / 2):(0):(0):2:(-0.6):(0.6) with boxxyerror \
             linecolor rgb "#7fb2e5", \
         data every ::(row - 1)::(row - 1) using 2:(0):3:4 with xerrorbars pointtype 7 pointsize 0.4 linewidth 1.5 \
             linecolor rgb "#1f2d3d"
    unset label
    unset arrow
}
unset multiplot
