/// @file
/// The page that shows the sale. One document, which loads only the figures.
#pragma once

#include <string>
#include <string_view>

namespace flash {

/// @param figures in JSON, of a sale that is over; null: the page asks the service for them, until there is a verdict.
inline std::string page(std::string_view figures = "null")
{
    constexpr std::string_view head = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Flash sale</title>
<style>
:root { color-scheme: light dark; --ink: #1c2330; --paper: #fff; --faint: #596170; --rule: #dde1e8; --bar: #2f6fde;
  --under: #b26a00; --lane: #e9ecf1; --bad: #c9241a; --good: #177245 }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --paper: #14171d; --faint: #a3abb9; --rule: #2c323d;
  --bar: #6ea1ff; --under: #e8a33d; --lane: #2b313c; --bad: #ff6f65; --good: #4cc38a } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif }
main { max-width: 56rem; margin: 0 auto; padding: 1.2rem }
h1 { font-size: 1.7rem; margin: .2rem 0 } h2 { font-size: 1.1rem; margin: 1.5rem 0 .3rem } p { margin: .25rem 0 }
#verdict { text-wrap: balance; font-weight: 600; font-size: 1.15rem; margin: .7rem 0 }
#verdict:empty, #silent:empty { display: none }
.good { color: var(--good) } .bad, #silent { color: var(--bad) }
#track { display: flex; height: .9rem; background: var(--lane); margin: .8rem 0 1rem }
#track i:first-child, .created { background: var(--bar) } #track i + i, .under { background: var(--under) }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(11rem, 45%), 1fr)); gap: .7rem; margin: 0 }
dl div { border: 1px solid var(--rule); border-radius: .4rem; padding: .5rem .8rem }
dt { color: var(--faint); font-size: .9rem } dd { margin: 0; font-size: 1.7rem; font-variant-numeric: tabular-nums }
dt i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; background: var(--lane) }
#track, dt i { outline: 1px solid var(--faint) }
svg { display: block; width: 100%; overflow: visible; font-size: 12px } text { fill: var(--faint) }
svg rect { fill: var(--bar) } svg rect.trouble { fill: var(--bad) } line { stroke: var(--rule) }
#troubles { columns: 15rem; padding-left: 1.2rem; margin: .5rem 0; font-size: .9rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem } caption { text-align: left; color: var(--faint) }
th, td { text-align: left; font-weight: 400; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--rule) }
thead { color: var(--faint) } th ~ * { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
</style></head><body><main>
<h1>Flash sale</h1>
<p>A stock of <b id="stock">–</b> pieces. Redis admits the orders; workers create them in PostgreSQL, each under the
lock of its user. Meanwhile workers and the service are killed and stopped.</p>
<p id="verdict" role="status"></p><p id="silent" role="status"></p>
<div id="track"><i></i><i></i></div>
<dl>
<div><dt><i class="created"></i>orders created</dt><dd id="created">–</dd></div>
<div><dt><i class="under"></i>under way</dt><dd id="underway">–</dd></div>
<div><dt><i></i>pieces left</dt><dd id="left">–</dd></div>
<div><dt>busiest second</dt><dd id="most">–</dd></div>
<div><dt>locks held</dt><dd id="holds">–</dd></div>
<div><dt>waiting for a lock</dt><dd id="waiters">–</dd></div>
<div><dt>orders taken over</dt><dd id="claimed">–</dd></div>
<div><dt>late writes refused</dt><dd id="refused">–</dd></div>
</dl>
<h2>Orders created in each second</h2>
<svg id="chart" role="img" aria-label="The chart comes with the first figures."></svg>
<h2>Failures</h2>
<ul id="troubles"></ul>
<div id="proof"></div>
</main>
<script>
const saved = )html";
    constexpr std::string_view tail = R"html(;
const at = id => document.getElementById(id);
const figure = number => String(number).replace(/\B(?=(\d{3})+$)/g, '\u202f');
const seconds = number => number.toFixed(1);
const kinds = ['worker killed', 'worker stopped', 'service killed'];
let shown;
function show(status) {
    shown = status;
    status.most = Math.max(0, ...status.seconds);
    for (const id of ['stock', 'created', 'underway', 'left', 'most', 'holds', 'waiters', 'claimed', 'refused'])
        at(id).textContent = figure(status[id]);
    const [created, underway] = at('track').children;
    created.style.width = 100 * status.created / status.stock + '%';
    underway.style.width = 100 * status.underway / status.stock + '%';
    at('troubles').innerHTML = status.troubles.map(({kind, who, from, to}) =>
        `<li>${seconds(from)}${to ? ' to ' + seconds(to) : ''} s: ${who} ${kind.split(' ')[1]}</li>`).join('') ||
        '<li>none</li>';
    draw(status);
    if (status.verdict) conclude(status.verdict);
}
function draw({seconds: counts, troubles, most: busiest}) {
    const chart = at('chart'), wide = chart.clientWidth, left = 44, high = 170, top = 10;
    const length = Math.max(10, counts.length), step = room => [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
        .find(size => room(size)) ?? 10000;
    const x = second => left + (wide - left) * second / length;
    const every = step(size => length / size * 40 < wide - left), rise = step(size => busiest / size <= 4);
    const most = Math.ceil(Math.max(busiest, 1) / rise) * rise, y = count => high - (high - top) * count / most;
    const text = (name, x, y, words) => `<text class="${name}" x="${x}" y="${y}">${words}</text>`;
    let svg = '';
    for (let count = 0; count <= most; count += rise)
        svg += `<line x1="${left}" x2="${wide}" y1="${y(count)}" y2="${y(count)}"/>` +
            `<text class="y" text-anchor="end" x="${left - 6}" y="${y(count) + 4}">${figure(count)}</text>`;
    counts.forEach((count, second) => svg += `<rect x="${x(second + .1)}" y="${y(count)}" ` +
        `width="${x(.8) - x(0)}" height="${high - y(count)}"/>`);
    for (let second = 0; second < length; second += every) svg += text('x', x(second), high + 16, second);
    svg += text('', left, high + 34, 'seconds since the sale opened');
    kinds.forEach((kind, lane) => {
        const under = high + 60 + 30 * lane;
        svg += text('', left, under, kind) + `<line x1="${left}" x2="${wide}" y1="${under + 15}" y2="${under + 15}"/>`;
        for (const {from, to} of troubles.filter(trouble => trouble.kind === kind))
            svg += `<rect class="trouble" x="${x(from)}" y="${under + 6}" height="9" ` +
                `width="${Math.max(3, x(to ?? (lane === 1 ? counts.length : from)) - x(from))}"/>`;
    });
    chart.style.height = high + 140 + 'px';
    chart.innerHTML = svg;
    chart.ariaLabel = `Bars: orders created in each second since the sale opened, at most ${busiest}. ` +
        `Below the bars, on the same axis, ${troubles.length} failures; the list that follows has their times.`;
}
function conclude({good, text, proof}) {
    at('verdict').className = good ? 'good' : 'bad';
    at('verdict').textContent = (good ? '✓ ' : '✗ ') + text;
    at('proof').innerHTML = '<h2>Proof</h2><table><caption>What must be true after the sale</caption>' +
        '<thead><tr><th scope="col">figure</th><th scope="col">expected</th><th scope="col">found</th></tr></thead>' +
        '<tbody>' + proof.map(([what, wanted, found]) => `<tr><th scope="row">${what}</th><td>${figure(wanted)}</td>` +
            `<td class="${wanted === found ? '' : 'bad'}">${figure(found)}${wanted === found ? '' : ' ✗'}</td></tr>`)
            .join('') + '</tbody></table>';
}
async function refresh() {
    try {
        const answer = await fetch('/status');
        if (!answer.ok) throw new Error(await answer.text());
        show(await answer.json());
        at('silent').textContent = '';
    } catch (error) {
        at('silent').textContent = 'The service does not answer: it may have been killed. The page asks again.';
    }
    if (!shown?.verdict) setTimeout(refresh, 500);
}
addEventListener('resize', () => shown && draw(shown));
saved ? show(saved) : refresh();
</script></body></html>
)html";
    return std::string(head).append(figures).append(tail);
}

} // namespace flash
