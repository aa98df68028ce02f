"""Draws figures against concurrency as SVG: a logarithmic scale, and colours that show on light and dark pages."""

import math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 100, 24, 56, 56
COLOURS = ("#8a8f98", "#2f81f7", "#d9822b")
DASHES = ("6 4", "none", "2 3")

# Where the viewer does not tell which page it is on, a grey that can be read on both.
STYLE = """
text { font-family: sans-serif; font-size: 14px; fill: #6e7781; }
.grid { stroke: #8a8f98; stroke-opacity: 0.35; }
@media (prefers-color-scheme: light) { text { fill: #3d444d; } }
@media (prefers-color-scheme: dark) { text { fill: #d1d7e0; } }
"""


def write(path, unit, xs, lines):
    """Writes one plot; a line is its title and a figure for each of `xs`."""
    bounds = ticks([figure for _, figures in lines for figure in figures])
    parts = [f"<style>{STYLE}</style>", *grid(bounds, unit), *axis(xs)]
    for number, (title, figures) in enumerate(lines):
        parts += line(number, figures, bounds) + legend(number, title)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n' + "\n".join(parts) + "\n</svg>\n")


def ticks(figures):
    """1, 2 and 5 times powers of ten, from one below the lowest figure to one above the highest."""
    steps = [mantissa * 10.0**power for power in range(-1, 9) for mantissa in (1, 2, 5)]
    first = max(step for step in steps if step <= min(figures))
    last = min(step for step in steps if step >= max(figures))
    return [step for step in steps if first <= step <= last]


def x_of(index, count):
    return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / count


def y_of(figure, bounds):
    low, high = math.log(bounds[0]), math.log(bounds[-1])
    share = (math.log(figure) - low) / ((high - low) or 1)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def grid(bounds, unit):
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts = [text(16, middle, unit, more=f' transform="rotate(-90 16 {middle:.1f})"')]
    for step in bounds:
        y = y_of(step, bounds)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(text(LEFT - 8, y + 5, f"{step:,.0f}", "end"))
    return parts


def axis(xs):
    parts = [text(x_of(i, len(xs)), HEIGHT - BOTTOM + 22, x) for i, x in enumerate(xs)]
    return [*parts, text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "calls under way at once")]


def line(number, figures, bounds):
    points = [(x_of(i, len(figures)), y_of(figure, bounds)) for i, figure in enumerate(figures)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = f'stroke="{COLOURS[number]}" stroke-dasharray="{DASHES[number]}"'
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOURS[number]}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke-width="2.5" {style}/>', *dots]


def legend(number, title):
    x = LEFT + number * (WIDTH - LEFT - RIGHT) / 3
    style = f'stroke="{COLOURS[number]}" stroke-dasharray="{DASHES[number]}"'
    mark = f'<line x1="{x:.1f}" y1="24" x2="{x + 28:.1f}" y2="24" stroke-width="2.5" {style}/>'
    return [mark, text(x + 34, 29, title, "start")]
