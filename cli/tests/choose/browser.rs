//! Looks at a page in a real browser, if one is installed.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde::Deserialize;

/// A browser without a window.
pub(crate) struct Browser {
    program: &'static str,
    folder: PathBuf,
}

/// What it showed at a width.
#[derive(Debug, Deserialize)]
pub(crate) struct Shown {
    pub(crate) width: f64,
    /// How wide the page would like to be.
    pub(crate) wanted: f64,
    pub(crate) rows: usize,
    pub(crate) pictures: usize,
    /// The recommendation.
    pub(crate) headline: String,
    /// Red, green and blue behind the page.
    pub(crate) paper: String,
    /// The lowest contrast of a text with what is behind it, and that text.
    pub(crate) contrast: f64,
    pub(crate) palest: String,
}

/// What it showed at all widths, and what it wrote to its console.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) shown: Vec<Shown>,
    pub(crate) console: Vec<String>,
}

/// Measures the page in frames of several widths, and says one word to the console, to show that it is heard.
const MEASURE: &str = r#"<!doctype html><html style="color-scheme:light dark"><body><script>
const page = PAGE;
const rgb = text => (text.match(/[\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (view, element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = rgb(view.getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) return colour;
  }
};
const contrast = (view, element) => {
  const [a, b] = [light(rgb(view.getComputedStyle(element).color)), light(behind(view, element))].sort((a, b) => b - a);
  return (a + 0.05) / (b + 0.05);
};
const measure = (frame, width) => {
  const [view, document] = [frame.contentWindow, frame.contentDocument];
  const texts = [...document.body.querySelectorAll('*')]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
    .map(e => [contrast(view, e), e.textContent.trim().slice(0, 60)]).sort((a, b) => a[0] - b[0]);
  return {
    width, wanted: document.documentElement.scrollWidth,
    rows: document.querySelectorAll('tbody tr').length,
    pictures: [...document.images].filter(image => image.complete && image.naturalWidth > 0).length,
    headline: document.getElementById('recommendation').textContent,
    paper: view.getComputedStyle(document.body).backgroundColor,
    contrast: texts[0][0], palest: texts[0][1],
  };
};
const shown = Promise.all([390, 1200].map(width => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.style = `border:0;color-scheme:light dark;height:900px;width:${width}px`;
  frame.onload = () => { const seen = measure(frame, width); frame.remove(); done(seen); };
  frame.srcdoc = page;
  document.body.append(frame);
})));
shown.then(shown => {
  console.log('measured');
  const out = document.createElement('pre');
  out.id = 'shown';
  out.textContent = JSON.stringify(shown);
  document.body.replaceChildren(out);
});
</script></body></html>"#;

impl Browser {
    /// The one that is installed. If there is none, that is said aloud: on the error output itself, since what tests print
    /// is only shown when they fail.
    pub(crate) fn find(folder: PathBuf) -> Option<Self> {
        let starts = |program: &&str| {
            Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
        };
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(starts);
        if program.is_none() {
            let _ = writeln!(
                io::stderr(),
                "SKIPPED: no chromium is installed, so no page was looked at in a browser"
            );
        }
        program.map(|program| Self { program, folder })
    }

    /// What a page shows to somebody who prefers light or dark pages.
    pub(crate) fn look(&self, page: &Path, dark: bool) -> Seen {
        let text = serde_json::to_string(&fs::read_to_string(page).unwrap()).unwrap().replace("</", "<\\/");
        let measuring = self.folder.join(if dark { "measured_dark.html" } else { "measured_light.html" });
        fs::write(&measuring, MEASURE.replace("PAGE", &text)).unwrap();
        let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
        let output = self.run(&measuring, &[&scheme, "--dump-dom", "--enable-logging=stderr"]);
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let console = String::from_utf8_lossy(&output.stderr);
        let json = dom.split_once("<pre id=\"shown\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        let (json, _) = json.unwrap_or_else(|| panic!("nothing was measured: {console}"));
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        Seen {
            shown: serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}")),
            console: console.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
        }
    }

    /// A picture of a page on a phone, as PNG.
    pub(crate) fn picture(&self, page: &Path) -> Vec<u8> {
        let file = self.folder.join("phone.png");
        self.run(page, &["--window-size=390,844", &format!("--screenshot={}", file.display())]);
        fs::read(file).unwrap()
    }

    fn run(&self, page: &Path, arguments: &[&str]) -> Output {
        let output = Command::new(self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000"])
            .arg(format!("--user-data-dir={}", self.folder.join("browser").display()))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }
}
