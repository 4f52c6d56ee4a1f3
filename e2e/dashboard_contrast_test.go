//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chromedp/chromedp"
)

// contrasts has axe-core judge the contrast of texts, one of each kind that is not known. Texts are of a kind if all is
// the same on which their contrast depends: their colour, size and weight, and what they and the elements around them
// lay beneath them. Where that is something that they float over, the kind is that of this page alone. If axe-core
// cannot judge the first text of a kind, it is asked about all of them: a text may be cut off, or of a disabled field.
const contrasts = `(async (known, page) => {
	const around = new Map([[null, ""]]), unseen = "unseen", floats = new Set(["absolute", "fixed", "sticky"]);
	const beneath = (e) => { // what an element and those around it draw behind a text
		if (around.has(e)) return around.get(e);
		const s = getComputedStyle(e), opaque = /^rgb\(/.test(s.backgroundColor) && s.backgroundImage === "none";
		let of = beneath(e.parentElement);
		if (s.opacity !== "1" || s.filter !== "none" || s.mixBlendMode !== "normal") of += "; " + [s.opacity, s.filter, s.mixBlendMode, page];
		else if (opaque && !of.includes(";")) of = "";
		else if (floats.has(s.position)) of += " over " + page;
		if (s.backgroundColor !== "rgba(0, 0, 0, 0)" || s.backgroundImage !== "none") of += [" on", s.backgroundColor, s.backgroundImage];
		if (s.clipPath === "inset(50%%)" || e.matches(".skip")) of = unseen; // it is for screen readers, or out of the page
		around.set(e, of);
		return of;
	};
	const kindOf = (e) => {
		const s = getComputedStyle(e);
		return [s.color, s.fontSize, s.fontWeight, s.textShadow, e.matches("input, select, textarea")] + beneath(e);
	};
	const says = (e) => e.matches("input:not([type=checkbox], [type=radio]), select, textarea") || // axe-core judges no lone sign
		[...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim().length > 1);
	const left = Map.groupBy([...document.body.querySelectorAll("*")].filter((e) =>
		says(e) && e.checkVisibility({visibilityProperty: true}) && !beneath(e).startsWith(unseen)), kindOf);
	for (const kind of known) left.delete(kind);
	const judged = [], violations = [];
	for (let most = 1; left.size; most = Infinity) {
		const asked = [...left.values()].flatMap((texts) => texts.splice(0, most));
		if (!asked.length) break;
		const found = await axe.run({include: asked}, {preload: false, elementRef: true, resultTypes: ["violations", "passes"],
			runOnly: {type: "rule", values: ["color-contrast"]}});
		violations.push(...found.violations);
		for (const { element } of [...found.violations, ...found.passes].flatMap((rule) => rule.nodes)) {
			judged.push(kindOf(element));
			left.delete(kindOf(element));
		}
	}
	return JSON.stringify({judged, violations});
})(%s, %q)`

// judged are the kinds of texts that axe-core has found good on a page before, in whichever test.
var judged = map[string]bool{}

// lacking returns the texts of the page that is shown that lack contrast, one of each kind that was not judged yet.
func (d *dashboard) lacking(about string) []barrier {
	d.Helper()
	var text string
	var found struct {
		Judged     []string
		Violations []barrier
	}
	known := encode(d.T, slices.AppendSeq([]string{}, maps.Keys(judged)))
	d.run(evaluated(fmt.Sprintf(contrasts, known, d.Name()+about), &text, chromedp.EvalAwaitPromise))
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		d.Fatalf("%v in %s", err, text)
	}
	if len(found.Violations) > 0 {
		return found.Violations // the next page names those that it has as well
	}
	for _, kind := range found.Judged {
		judged[kind] = true
	}
	return nil
}
