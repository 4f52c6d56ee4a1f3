package agentdocs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

const internalPath = "github.com/claudeops/claudeops/internal/"

// importGraph holds the districts of internal/: their packages, and which districts they import.
type importGraph struct {
	packages map[string][]string        // by district, below its folder; sorted
	imports  map[string]map[string]bool // by district
}

// readImports reads the imports of the product's files. Tests and testkit are left out.
func readImports(t *testing.T) importGraph {
	t.Helper()
	g := importGraph{map[string][]string{}, map[string]map[string]bool{}}
	eachSource(t, "internal", parser.ImportsOnly, func(name string, parsed *ast.File) {
		folder := strings.TrimPrefix(path.Dir(name), "internal/")
		district, inside, _ := strings.Cut(folder, "/")
		if district == "testkit" || strings.HasSuffix(folder, "test") || strings.Contains(folder, "/testdata") {
			return
		}
		if inside != "" && !slices.Contains(g.packages[district], inside) {
			g.packages[district] = append(g.packages[district], inside)
		}
		if g.imports[district] == nil {
			g.imports[district] = map[string]bool{}
		}
		for _, i := range parsed.Imports {
			to, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), internalPath)
			if to, _, _ = strings.Cut(to, "/"); ours && to != district {
				g.imports[district][to] = true
			}
		}
	})
	for _, inside := range g.packages {
		slices.Sort(inside)
	}
	return g
}

// reaches says whether a district imports another one, directly or by way of others.
func (g importGraph) reaches(from, to string) bool {
	for next := range g.imports[from] {
		if next == to || g.reaches(next, to) {
			return true
		}
	}
	return false
}

// direct returns the imports that no other way implies: of cli -> app -> ops, cli -> ops is left out.
func (g importGraph) direct(from string) (out []string) {
	for _, to := range slices.Sorted(maps.Keys(g.imports[from])) {
		implied := slices.ContainsFunc(slices.Collect(maps.Keys(g.imports[from])), func(by string) bool {
			return by != to && g.reaches(by, to)
		})
		if !implied {
			out = append(out, to)
		}
	}
	return out
}

// depth is the number of districts on the longest way down to one.
func (g importGraph) depth(district string) (d int) {
	for above, imports := range g.imports {
		if imports[district] {
			d = max(d, 1+g.depth(above))
		}
	}
	return d
}

// rows are the districts by depth, those that no other imports first; each row is sorted.
func (g importGraph) rows() (out [][]string) {
	byDepth := map[int][]string{}
	for district := range g.imports {
		d := g.depth(district)
		byDepth[d] = append(byDepth[d], district)
	}
	for _, d := range slices.Sorted(maps.Keys(byDepth)) {
		slices.Sort(byDepth[d])
		out = append(out, byDepth[d])
	}
	return out
}

// Measures of the picture, in pixels.
const (
	pictureWidth = 960
	boxGap       = 24
	rowGap       = 34
	textHeight   = 17
	charWidth    = 7.4 // of 12 px monospace, rounded up
)

// box is the place of a district.
type box struct{ x, y, width, height int }

// wrapWords breaks names into lines of at most width characters.
func wrapWords(names []string, width int) (lines []string) {
	line := ""
	for _, name := range names {
		if line != "" && len(line)+2+len(name) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+"  "+name, "  ")
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// place gives each district its box.
func (g importGraph) place() (boxes map[string]box, height int) {
	boxes = map[string]box{}
	y := boxGap
	for _, row := range g.rows() {
		width := (pictureWidth - boxGap*(len(row)+1)) / len(row)
		tallest := 0
		for i, district := range row {
			lines := wrapWords(g.packages[district], int(float64(width-20)/charWidth))
			b := box{boxGap + i*(width+boxGap), y, width, 16 + textHeight*(1+len(lines))}
			boxes[district] = b
			tallest = max(tallest, b.height)
		}
		y += tallest + rowGap
	}
	return boxes, y - rowGap + boxGap
}

// draw writes the picture as SVG. Arrows lie below the boxes.
func (g importGraph) draw() []byte {
	boxes, height := g.place()
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="monospace" font-size="12">
<title>Which folders of internal/ import which</title>
<!-- Written by make golden from the imports. -->
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>
<rect width="100%%" height="100%%" fill="#fff"/>
`, pictureWidth, height)
	for _, row := range g.rows() {
		for _, from := range row {
			targets := g.direct(from)
			for i, to := range targets {
				f, at := boxes[from], boxes[to]
				x := f.x + f.width*(i+1)/(len(targets)+1)
				end := min(max(x, at.x+20), at.x+at.width-20)
				fmt.Fprintf(&b, "<path d=\"M%d %dL%d %d\" stroke=\"#667\" fill=\"none\" marker-end=\"url(#tip)\"/>\n",
					x, f.y+f.height, end, at.y)
			}
		}
	}
	for _, row := range g.rows() {
		for _, district := range row {
			at := boxes[district]
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"#f3f5f9\" stroke=\"#99a\"/>\n",
				at.x, at.y, at.width, at.height)
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\" font-size=\"13\">%s</text>\n",
				at.x+10, at.y+18, district)
			for i, line := range wrapWords(g.packages[district], int(float64(at.width-20)/charWidth)) {
				fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" fill=\"#445\" xml:space=\"preserve\">%s</text>\n",
					at.x+10, at.y+18+textHeight*(i+1), line)
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func TestThePageOfTheArchitectureShowsTheImports(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	g := readImports(t)
	if len(g.imports) < 10 || !g.imports["cli"]["app"] || g.reaches("base", "cli") {
		t.Fatalf("the imports were not read: %v", g.imports)
	}
	operationtest.Golden(t, filepath.Join(root, "docs", "images", "imports.svg"), g.draw())
}

// Names of the code in pages: `package.Name` or `package.Type.method`.
var codeName = regexp.MustCompile("`([a-z]+)\\.([A-Za-z]+)(?:\\.([A-Za-z]+))?`") //nolint:gochecknoglobals // a pattern

func TestPagesNameCodeThatExists(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	declared := declaredNames(t)
	packages := map[string]bool{}
	for name := range declared {
		of, _, _ := strings.Cut(name, ".")
		packages[of] = true
	}
	for page, least := range map[string]int{"explain/architecture.md": 15, "guides/development.md": 5} {
		found := codeName.FindAllStringSubmatch(readPage(t, filepath.Join(root, "docs", filepath.FromSlash(page))), -1)
		named := 0
		for _, match := range found {
			name := strings.Trim(match[0], "`")
			switch {
			case !packages[match[1]]: // a file, such as `gates.go`
			case !declared[name]:
				t.Errorf("%s names %s, which does not exist", page, name)
			default:
				named++
			}
		}
		if named < least {
			t.Errorf("%s names %d places only", page, named)
		}
	}
}

// declaredNames are the functions, types and methods of internal/, as `package.Name` or `package.Type.method`.
func declaredNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	eachSource(t, "internal", parser.SkipObjectResolution, func(_ string, parsed *ast.File) {
		for _, declaration := range parsed.Decls {
			for _, declaredName := range namesOf(declaration) {
				names[parsed.Name.Name+"."+declaredName] = true
			}
		}
	})
	return names
}

// namesOf returns the types of a declaration, or its function with the type that it is a method of.
func namesOf(declaration ast.Decl) (names []string) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		of := d.Recv.List[0].Type
		if pointer, isPointer := of.(*ast.StarExpr); isPointer {
			of = pointer.X
		}
		if named, isName := of.(*ast.Ident); isName {
			names = append(names, named.Name+"."+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if typed, isType := spec.(*ast.TypeSpec); isType {
				names = append(names, typed.Name.Name)
			}
		}
	}
	return names
}
