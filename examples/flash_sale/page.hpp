/// @file
/// The page that shows the sale. One document; it loads nothing but the figures.
#pragma once

#include <string_view>

namespace flash {

inline constexpr std::string_view page = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Flash sale</title>
<style>
:root { color-scheme: light dark; --ink: #1c2330; --paper: #fff; --faint: #667; --rule: #dde1e8; --bar: #2f6fde;
  --lane: #f3f5f8; --bad: #d92d20 }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --paper: #14171d; --faint: #9aa3b2; --rule: #2c323d;
  --bar: #6ea1ff; --lane: #1c2129; --bad: #ff6257 } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif }
main { max-width: 52rem; margin: 0 auto; padding: 1.2rem }
h1 { font-size: 1.6rem; margin: .2rem 0 } p { margin: .25rem 0 }
#trouble { color: var(--bad); font-weight: 600; min-height: 1.45em }
#track { height: .9rem; background: var(--lane); margin: .6rem 0 1rem }
#track i { display: block; height: 100%; width: 0; background: var(--bar) }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .8rem; margin: 0 }
dl div { border: 1px solid var(--rule); border-radius: .4rem; padding: .6rem .8rem }
dt { color: var(--faint); font-size: .9rem }
dd { margin: 0; font-size: 1.9rem; font-variant-numeric: tabular-nums }
h2 { font-size: 1rem; margin: 1.2rem 0 .3rem }
svg { display: block; width: 100%; height: 8rem; background: var(--lane) } svg rect { fill: var(--bar) }
</style></head><body><main>
<h1>Flash sale</h1>
<p>A stock of <b id="stock">–</b> pieces. Redis admits the orders; workers create them in
PostgreSQL, each under the lock of its user.</p>
<p id="trouble" role="status"></p>
<div id="track"><i></i></div>
<dl>
<div><dt>pieces left</dt><dd id="left">–</dd></div>
<div><dt>orders created</dt><dd id="created">–</dd></div>
<div><dt>orders a second</dt><dd id="rate">–</dd></div>
<div><dt>orders under way</dt><dd id="unfinished">–</dd></div>
<div><dt>locks held</dt><dd id="holds">–</dd></div>
<div><dt>waiters for a lock</dt><dd id="waiters">–</dd></div>
<div><dt>orders claimed</dt><dd id="claimed">–</dd></div>
<div><dt>late writers refused</dt><dd id="refused">–</dd></div>
</dl>
<h2>Orders created in each second, at most <span id="most">–</span></h2>
<svg id="seconds" viewBox="0 0 30 100" preserveAspectRatio="none" role="img" aria-label="orders in each second"></svg>
</main>
<script>
const at = id => document.getElementById(id);
function show(status) {
    for (const id of ['stock', 'left', 'created', 'unfinished', 'holds', 'waiters', 'claimed', 'refused'])
        at(id).textContent = status[id];
    const seconds = status.seconds.slice(-30), most = Math.max(1, ...seconds);
    at('rate').textContent = seconds.at(-2) ?? 0; // the last second is not over
    at('most').textContent = most;
    at('track').firstElementChild.style.width = 100 * status.left / status.stock + '%';
    at('seconds').innerHTML = seconds.map((count, second) => {
        const height = 96 * count / most;
        return `<rect x="${second + .1}" y="${100 - height}" width=".8" height="${height}"/>`;
    }).join('');
}
async function refresh() {
    try {
        const answer = await fetch('/status');
        if (!answer.ok) throw new Error(await answer.text());
        show(await answer.json());
        at('trouble').textContent = '';
    } catch (error) {
        at('trouble').textContent = 'The service does not answer; the page asks again.';
    }
    setTimeout(refresh, 500);
}
refresh();
</script></body></html>
)html";

} // namespace flash
