# A page of Markdown as Doxygen wants it: headings get the labels that links name, and links lead to these labels.
# root is the top of the tree, with a slash. Labels are <file>-<heading>, so that headings of two pages may have one text.
function label(path) {
    if (path == "README.md") return "mainpage"
    sub(/\.md$/, "", path)
    gsub(/[^A-Za-z0-9]/, "-", path)
    return "page-" tolower(path)
}
function anchor(text) {
    text = tolower(text)
    gsub(/[^a-z0-9_ -]/, "", text)
    gsub(/ /, "-", text)
    return text
}
# The path of the target from the top of the tree.
function resolved(target,    folder) {
    folder = page
    if (!sub(/\/[^\/]*$/, "", folder)) folder = ""
    while (sub(/^\.\.\//, "", target)) if (!sub(/\/?[^\/]*$/, "", folder)) folder = ""
    return folder == "" ? target : folder "/" target
}
NR == 1 { page = substr(FILENAME, length(root) + 1) }
/^ *```/ { code = !code }
code || /^ *```/ { print; next }
/^#+ / {
    level = $1
    sub(/^#+ /, "")
    print level " " $0 " {#" label(page) (level == "#" ? "" : "-" anchor($0)) "}"
    next
}
{
    line = $0
    gsub(/`::/, "`\342\200\213::", line) # otherwise a link to a function, also in code
    out = ""
    while (match(line, /\]\([^)]*\)/)) {
        target = substr(line, RSTART + 2, RLENGTH - 3)
        out = out substr(line, 1, RSTART)
        line = substr(line, RSTART + RLENGTH)
        if (target ~ /^#/) target = "#" label(page) "-" substr(target, 2)
        else if (target ~ /\.md(#.*)?$/) {
            split(target, part, "#")
            target = "#" label(resolved(part[1])) (part[2] == "" ? "" : "-" part[2])
        } else if (target !~ /^[a-z]+:/ && out !~ /!\[[^]]*\]$/) target = "../../../" resolved(target)
        out = out "(" target ")"
    }
    print out line
}
