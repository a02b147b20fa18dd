# A picture of the gaps. Called by bench/failover/run --plot with the variables
#   data    lines of: fault, figure, median, least, worst; separated by tabs
#   output  the picture
# For each fault, a bar for the median of each client, and a whisker from the least to the worst round. A client that
# has no lock any more has a bar that ends at 15 seconds.
set datafile separator "\t"
limit = 15.0
seconds(column) = stringcolumn(column) eq "inf" ? limit : column(column)
rows(figure) = sprintf("< awk -F '\\t' '$2 == \"%s\"' '%s'", figure, data)

set terminal svg size 1300, 420 font "DejaVu Sans,12" background "white"
set encoding utf8
set output output
set title "The longest time between two locks, in seconds, when another server becomes the master" font ",14"
set style fill solid 0.9 noborder
set boxwidth 0.3
set border 3
set tics nomirror out
set xrange [-0.6 : *]
set yrange [0 : 16]
set key top left reverse Left
set bmargin 3

plot rows("redisson gap") using ($0 + 0.17):(seconds(3)) with boxes linecolor rgb "#c9ced6" title "Redisson", \
     rows("gap") using ($0 - 0.17):(seconds(3)):xtic(1) with boxes linecolor rgb "#7fb2e5" title "redislock", \
     rows("redisson gap") using ($0 + 0.17):(seconds(3)):(seconds(4)):(seconds(5)) with yerrorbars pointtype 7 \
         pointsize 0.3 linewidth 1.5 linecolor rgb "#1f2d3d" notitle, \
     rows("gap") using ($0 - 0.17):(seconds(3)):(seconds(4)):(seconds(5)) with yerrorbars pointtype 7 \
         pointsize 0.3 linewidth 1.5 linecolor rgb "#1f2d3d" notitle, \
     rows("redisson gap") using ($0 + 0.17):(seconds(5)):(stringcolumn(3) eq "inf" ? "never" : \
         sprintf("%.1f", column(3))) with labels offset 0, 0.8 notitle, \
     rows("gap") using ($0 - 0.17):(seconds(5)):(sprintf("%.2f", column(3))) with labels offset 0, 0.8 notitle
