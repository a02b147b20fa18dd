# One picture of a row. Called by bench/peers/run --plot with the variables
#   data    the row's lines of the output of --tsv
#   row     for the title
#   output  the picture
# Each figure has a panel of its own: a bar for the median of each peer, a whisker from the smallest to the greatest
# round.
set datafile separator "\t"
names = system("cut -f 2 '" . data . "' | uniq | tr ' ' '_'")
figures = words(names)
field(figure, column) = \
    system(sprintf("awk -F '\\t' -v n='%s' '$2 == n { print $%d; exit }' '%s'", figure, column, data))

height = 60 + figures * 260
set terminal svg size 900, height font "DejaVu Sans,12" background "white"
set encoding utf8
set output output
set multiplot layout figures, 1 title "redislock and others: " . row noenhanced font ",16" \
    margins 0.1, 0.97, 0.1, 0.88 spacing 0, 0.16
set style fill solid 0.9 noborder
set boxwidth 0.6
set border 3
set tics nomirror out
set xtics noenhanced font ",10"
set yrange [0 : *]
unset key
do for [at = 1 : figures] {
    figure = system(sprintf("echo '%s' | tr '_' ' '", word(names, at)))
    set title figure . ", " . field(figure, 3) . " (" . field(figure, 4) . " is better)" noenhanced font ",12"
    plot sprintf("< awk -F '\\t' -v n='%s' '$2 == n' '%s'", figure, data) using 0:6:xtic(5) with boxes \
             linecolor rgb "#7fb2e5", \
         "" using 0:6:7:8 with yerrorbars pointtype 7 pointsize 0.4 linewidth 1.5 linecolor rgb "#1f2d3d"
}
unset multiplot
