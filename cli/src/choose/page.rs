//! The report as one page that needs nothing else: no network, no scripts, pictures within.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    entrants::{Kind, spoken},
    pictures::Picture,
    ranking::Standing,
    report::Report,
    terminal,
    tournament::Tournament,
};
use crate::{plot::words::seconds, text::together};

/// What the table's figures mean.
pub(crate) const SCORE: &str = "\
Score: what was reached of the best that limits set in hindsight could do (the oracle of the simulator), as a geometric \
mean over the scenarios; 1 is perfect; \u{b1} is half of the 95 % confidence interval. *: as good as the best, for it loses \
less than 2 % to it, or less than 5 % and no more than chance. In time: answers before the deadline, of all requests. \
p99: of what was admitted.";

/// The browser itself keeps the page from asking for anything.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--paper:#fff;--edge:#d0d7de;--tint:#f6f8fa;--good:#007a5a}
@media(prefers-color-scheme:dark){:root{--ink:#f0f6fc;--soft:#9198a1;--paper:#0d1117;--edge:#3d444d;--tint:#161b22;\
--good:#2ec4a0}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:70rem;font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",\"Noto Sans\",\
Helvetica,Arial,sans-serif;color:var(--ink);background:var(--paper)}
h1{font-size:1.4rem;line-height:1.3;margin:1rem 0;border-left:.35rem solid var(--good);padding-left:.8rem}
h2{font-size:1.1rem;margin:2rem 0 .5rem}
h1,p,li{overflow-wrap:anywhere}
p,li{max-width:46rem}
ul{padding-left:1.2rem}
.soft{color:var(--soft);font-size:.9rem}
.wide{overflow-x:auto;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.3rem .45rem;border-bottom:1px solid var(--edge);text-align:right}
th{vertical-align:bottom}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:8rem;position:sticky;left:0;background:var(--paper)}
tr.pick td{font-weight:600;color:var(--good)}
tr.plain td{color:var(--soft)}
pre{white-space:pre-wrap;background:var(--tint);border:1px solid var(--edge);border-radius:6px;padding:.8rem;overflow-x:auto;font-size:.85rem}
img{display:block;width:100%;min-width:42rem;height:auto}
figure{margin:1rem 0}
";

pub(crate) fn page(report: &Report<'_>, pictures: &[Picture]) -> String {
    let advice = report.advice;
    let mut page = String::new();
    let out = &mut page;
    // Writing to a text cannot fail.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1 id=\"recommendation\">{headline}</h1>\n",
        title = escape(&format!("Which limiter for {}", report.source)),
        headline = escape(&advice.headline)
    );
    list(out, &advice.remarks);
    heading(out, "config", "The config");
    let _ = writeln!(
        out,
        "<p>Also in <code>limiter.toml</code>, which <code>GateConfig::from_toml</code> loads as it is.</p>\n\
         <pre>{}</pre>",
        escape(&advice.config)
    );
    heading(out, "recording", "What the log says");
    let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(report.source));
    list(out, &report.facts());
    heading(out, "ranking", "Who did how well");
    let _ = writeln!(
        out,
        "<p>An answer is good within {}. Objective: {}. Each limiter met each scenario {} times, all of them the same \
         chance.</p>",
        seconds(report.question.deadline.as_secs_f64()),
        report.tournament.objective.name(),
        report.tournament.seeds
    );
    table(out, report);
    let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(SCORE));
    heading(out, "pictures", "How the limits move");
    let _ = writeln!(
        out,
        "<p class=\"soft\">A column is a limiter; time runs to the right. Yellow: limits as good as the best. Coloured \
         in the second row: good answers; grey: admitted in vain.</p>"
    );
    for picture in pictures {
        // As images, since styles of pictures that stand in a page would be those of the whole page.
        let _ = writeln!(
            out,
            "<figure>\n<figcaption>{about}</figcaption>\n<div class=\"wide\"><img alt=\"{title}\" \
             src=\"data:image/svg+xml;base64,{data}\"></div>\n</figure>",
            about = escape(&picture.about),
            title = escape(&picture.title),
            data = STANDARD.encode(&picture.svg)
        );
    }
    heading(out, "assumptions", "What was assumed");
    list(out, &report.question.assumptions);
    let _ = writeln!(
        out,
        "<p>What the log does not hold, this report cannot know: paths that cost more than others, retries, other \
         services on the same machine, the next deploy. Try the limiter in observe-only mode first \
         (<code>observe_only = true</code>).</p>\n</main>\n</body>\n</html>"
    );
    page
}

fn table(out: &mut String, report: &Report<'_>) {
    out.push_str("<div class=\"wide\">\n<table>\n<thead><tr>");
    for [above, name] in header(report.tournament) {
        let above = escape(&above).replace(", ", ",<br>");
        let _ = write!(out, "<th scope=\"col\">{above}<br>{}</th>", escape(&name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for standing in &report.ranking.standings {
        let class = match standing.kind {
            _ if standing.index == report.advice.pick => " class=\"pick\"",
            Kind::Unlimited | Kind::Fixed => " class=\"plain\"",
            Kind::Defaults | Kind::Tuned => "",
        };
        let _ = write!(out, "<tr{class}>");
        for cell in row(standing) {
            let _ = write!(out, "<td>{}</td>", escape(&cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// The columns, in two lines each: the limiter and its score; then, for each world, answers in time and p99.
fn header(tournament: &Tournament<'_>) -> Vec<[String; 2]> {
    let first = [["", "limiter"], ["", "score"]];
    let worlds = tournament.worlds.iter().flat_map(|world| [[world.name.as_str(), "in time"], ["", "p99"]]);
    first.into_iter().chain(worlds).map(|lines| lines.map(str::to_owned)).collect()
}

/// A row of figures.
fn row(standing: &Standing) -> Vec<String> {
    let mut row = vec![spoken(&standing.name), terminal::score(standing)];
    row.extend(standing.worlds.iter().flat_map(terminal::figures));
    row
}

fn heading(out: &mut String, id: &str, title: &str) {
    let _ = writeln!(out, "<h2 id=\"{id}\">{title}</h2>");
}

fn list(out: &mut String, items: &[String]) {
    out.push_str("<ul>\n");
    for item in items {
        let _ = writeln!(out, "<li>{}</li>", escape(&together(item.trim())));
    }
    out.push_str("</ul>\n");
}

/// What stands in a log may look like markup: it is text.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_markup_is_text() {
        assert_eq!(escape("<script a=\"b\">&'"), "&lt;script a=&quot;b&quot;&gt;&amp;&#39;");
    }
}
