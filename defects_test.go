// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What goes wrong in context pipelines, from the study of one that many people
// use, each with the test that holds ours to better. A test is named by its
// folder and function, and by the case in it where there is one.
var pipelineDefects = []tested{
	{"rules of the request are a reduced copy of those of the page", "pipeline/rule TestStagesAndCache"},
	{"trim lists are ignored in requests", "pipeline/rule TestApply/trim"},
	{"escapes in replacements are ignored in requests", "pipeline/rule TestApply/escapes"},
	{"macros in patterns are ignored in requests", "pipeline/rule TestApply/macros in find, escaped"},
	{"rules of presets of one priority take turns", "pipeline/rule TestOrder"},
	{"the display ignores the priority of presets", "pipeline/rule TestStagesAndCache"},
	{"a pattern with an open repetition stops everything", "pipeline/rule TestCatastrophe"},
	{"nothing bounds the time of all rules", "pipeline/rule TestCatastropheOfMany"},
	{"only the first text of a message is seen by rules", "pipeline TestRulesOnParts"},
	{"an invalid rule takes others with it, or is not told", "pipeline TestBadRules"},
	{"prompts are changed by rules for the history", "pipeline TestRulesAndPrompts"},
	{"text that was captured is expanded as a macro", "pipeline/rule TestApply/captured text is no macro"},
	{"a bare pattern of an imported script has flags that it had not", "pipeline/rule TestSillyTavernMeaning"},
	{"an imported script with both flags works on the page alone", "pipeline/rule TestSillyTavernFields/both flags"},
	{"an imported script with neither flag does nothing", "pipeline/rule TestSillyTavernFields/neither flag"},
	{"$& and $$ of an imported script become references", "pipeline/rule TestSillyTavernFields/an older file"},
	{"formatters pull notes at depths to the head", "pipeline TestFormattersLeaveDepthsAlone"},
	{"the order of processors breaks when it is saved", "pipeline TestOrder"},
	{"a processor of a new release is off for who has saved settings", "pipeline TestOrder"},
	{"an unnamed priority makes the order a matter of chance", "pipeline TestRegistry"},
	{"a muted message is sent", "pipeline TestLoading/muted"},
	{"a muted summary is sent", "pipeline TestLoading/muted summary"},
	{"a loop of parents hangs the loader", "pipeline TestLoading/loop"},
	{"a missing parent loses what was found", "pipeline TestLoading/missing parent"},
	{"results of tools become messages of the user", "pipeline TestLoading/exchange"},
	{"conditions on models hold always in their default mode", "pipeline TestConditions/another model, and no word on providers"},
	{"an empty list of conditions counts as met", "pipeline TestConditions/any: one of two"},
	{"a failing processor is passed over silently", "pipeline TestFailingProcessors"},
	{"nothing ends a processor that hangs", "pipeline TestFailingProcessors/too slow"},
	{"a request goes out without a word of the user", "pipeline TestLimiterInvariants"},
	{"a request over the budget goes out without an error", "pipeline TestTooLarge"},
	{"nothing is reserved for the reply", "pipeline TestLimits/a quarter for the reply"},
	{"half of a tool exchange is dropped", "pipeline TestLimiterInvariants"},
	{"a text that is not shorter is cut and marked", "pipeline TestCutting"},
	{"a cut goes through a character", "pipeline TestCutting"},
	{"documents cost nothing", "pipeline/token TestOtherMedia"},
	{"a summary is dropped", "pipeline TestLimiterInvariants"},
	{"every message is counted anew with every build", "pipeline/token TestTextCache"},
	{"Chinese is counted too low", "pipeline/token TestEstimates"},
	{"notes beyond the history change places", "pipeline TestPlacing/beyond the history"},
	{"notes stand between others of one depth", "pipeline TestPlacing/positions are those of the history"},
	{"a note without a depth is lost silently", "pipeline TestPlacing/no valid depth"},
	{"a note at an unknown anchor is lost silently", "pipeline TestPlacing/no such anchor"},
	{"a disabled slot takes its notes with it", "pipeline TestPlacing/a disabled anchor"},
	{"a second slot repeats notes", "pipeline TestPlacing/a second slot"},
	{"points of a depth string beyond the history are lost", "pipeline TestPlacing/a series that is clamped"},
	{"values of macros are templates of a replacement", "pipeline/macro TestExpand/no rescan"},
	{"values of macros are expanded again", "pipeline/macro TestExpand/no rescan of messages"},
	{"one macro that stands twice runs once", "pipeline/macro TestExpand/each time"},
	{"what is set later is read before", "pipeline/macro TestExpand/left to right"},
	{"wrong numbers of arguments put errors into prompts", "pipeline/macro TestExpand/too few arguments"},
	{"unknown macros are not told", "pipeline/macro TestExpand/unknown"},
	{"merging loses pictures", "pipeline TestMergingKeepsAllParts"},
	{"empty texts bring separators", "pipeline TestMergedParts"},
	{"no separator cannot be chosen", "pipeline TestFormatters/no separator"},
	{"an agent's entry loses to, or is mixed with, the model's", "pipeline TestLevels/both: the agent's whole"},
	{"settings of levels hold for formatters alone", "pipeline TestRulesOfTheModel"},
	{"media go to models that cannot take them", "pipeline TestAttachments"},
	{"a picture that was put into words is not sent to models that see", "pipeline TestPolicies/a model that takes both"},
	{"a file with a fence breaks out of its fence", "pipeline TestAttachments"},
	{"files are inlined whatever their size", "pipeline TestAttachments"},
	{"opaque state is merged away", "pipeline TestFormatters/what was thought is not touched"},
	{"a preview changes the conversation", "app TestPreviewIsSent"},
	{"what a preview shows is not what is sent", "app TestPreviewIsSent"},
	{"nobody can see what a processor changed", "app TestEachProcessorsOwnWork"},
	{"variables are not those of the branch", "app TestVariablesOfBranches"},
}

// TestPipelineDefects fails where a test of the list is not there any more.
func TestPipelineDefects(t *testing.T) {
	allTested(t, pipelineDefects)
	if len(pipelineDefects) < 47 {
		t.Errorf("%d defects are listed; there were 47", len(pipelineDefects))
	}
}

// tested is a sentence with the test that holds the code to it, named by its
// folder and function, and by the case in it where there is one.
type tested struct{ what, test string }

func allTested(t *testing.T, list []tested) {
	t.Helper()
	read := map[string]map[string]*ast.FuncDecl{}
	seen := map[string]bool{}
	for _, d := range list {
		if seen[d.what] {
			t.Errorf("%s: it is listed twice", d.what)
		}
		seen[d.what] = true
		folder, name, _ := strings.Cut(d.test, " ")
		name, part, _ := strings.Cut(name, "/")
		if read[folder] == nil {
			read[folder] = testsIn(t, folder)
		}
		f := read[folder][name]
		if f == nil || part != "" && !says(f, part) {
			t.Errorf("%s: there is no test %s", d.what, d.test)
		}
	}
}

// testsIn returns the tests of a folder by name.
func testsIn(t *testing.T, folder string) map[string]*ast.FuncDecl {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ast.FuncDecl{}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				out[fn.Name.Name] = fn
			}
		}
	}
	return out
}

// says reports whether a function has a string.
func says(f *ast.FuncDecl, text string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, err := strconv.Unquote(lit.Value)
			found = found || err == nil && s == text
		}
		return !found
	})
	return found
}
