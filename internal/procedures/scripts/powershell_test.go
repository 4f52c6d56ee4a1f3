package scripts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func pointer(f float64) *float64 { return &f }

func known(v any) Constant { return Constant{Known: true, Value: v} }

func TestParsePowerShell(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Parameter
	}{
		"no block":            {"Write-Output 'param('\nfunction f { param($x) }\n", nil},
		"an empty block":      {"param()\n", nil},
		"names without types": {"param($a, $B)", []Parameter{{Name: "a"}, {Name: "B"}}},
		"one line and a comma": {"Param ( [string] $Path , [int]$Lines=0, )",
			[]Parameter{{Name: "Path", Type: String}, {Name: "Lines", Type: Integer, Default: known(int64(0))}}},
		"commas on lines of their own": {"param(\n  [string]$A\n  ,\n  # how many lines\n  [int]\n  $B = 3\n  ,[switch]$C\n)",
			[]Parameter{
				{Name: "A", Type: String}, {Name: "B", Type: Integer, Default: known(int64(3)), Description: "how many lines"},
				{Name: "C", Type: Boolean, Switch: true},
			}},
		"what may stand before": {"\ufeff#!/usr/bin/env pwsh\r\n#requires -Version 7\r\nusing namespace System.IO\r\n<# " +
			"licence #>\r\n[CmdletBinding(SupportsShouldProcess = $true, DefaultParameterSetName = " +
			"'a(b')]\r\n[OutputType([string])]\r\nPARAM(\r\n[String[]]$Names)", []Parameter{
			{Name: "Names", Type: Array, Items: String},
		}},
		"mandatory in every spelling": {"param([Parameter(Mandatory)]$a,[Parameter(Mandatory=$true)]$b,[parameter( " +
			"mandatory = $TRUE , Position=0)]$c,[Parameter(Mandatory=$false)]$d,[Parameter()]$e)", []Parameter{
			{Name: "a", Required: true}, {Name: "b", Required: true}, {Name: "c", Required: true}, {Name: "d"}, {Name: "e"},
		}},
		"mandatory in some sets": {"param([Parameter(Mandatory, ParameterSetName='one')][Parameter(Mandatory=$true, " +
			"ParameterSetName = \"two\")][string]$a,[Parameter(ParameterSetName='one')]$b)", []Parameter{
			{Name: "a", Type: String, RequiredIn: []string{"one", "two"}}, {Name: "b"},
		}},
		"sets, ranges, patterns, aliases": {"param(\n[ValidateSet('Windows 11', \"Windows 10\")] [string] $Win = 'Windows " +
			"11',\n[ValidateRange(1, 64)] # between\n[int]$Count = 2,\n[ValidateRange(512MB, 64GB)][long]$Memory = " +
			"4GB,\n[ValidatePattern('^v\\d+(-\\w+(\\.\\d{1,2})?)?$')][Alias('Tag','T')]$Release,\n[ValidateSet('zip','tar', " +
			"IgnoreCase=$false)][string[]]$Extra)", []Parameter{
			{Name: "Win", Type: String, Values: []string{"Windows 11", "Windows 10"}, Default: known("Windows 11")},
			{Name: "Count", Type: Integer, Range: Range{pointer(1), pointer(64)}, Default: known(int64(2)),
				Description: "between"},
			{Name: "Memory", Type: Integer, Range: Range{pointer(536870912), pointer(68719476736)},
				Default: known(int64(4294967296))},
			{Name: "Release", Pattern: Pattern{Text: `^v\d+(-\w+(\.\d{1,2})?)?$`}, Aliases: []string{"Tag", "T"}},
			{Name: "Extra", Type: Array, Items: String, Values: []string{"zip", "tar"}},
		}},
		"defaults that are constants": {"param($a='it''s, ) # not',$b=\"a`\"b`n\",$c=$true,$d=$null,$e=@(),$f=@('x',\n  " +
			"'y'\n  'z'),$g=-5,$h=0x1F,$i=1.5,$j='$env:HOME',$k=(('p')),$l=1,2)", []Parameter{
			{Name: "a", Default: known("it's, ) # not")}, {Name: "b", Default: known("a\"b\n")},
			{Name: "c", Default: known(true)}, {Name: "d", Default: known(nil)},
			{Name: "e", Default: known([]any{})}, {Name: "f", Default: known([]any{"x", "y", "z"})},
			{Name: "g", Default: known(int64(-5))},
			{Name: "h", Default: known(int64(31))}, {Name: "i", Default: known(1.5)}, {Name: "j", Default: known("$env:HOME")},
			{Name: "k", Default: known("p")},
			{Name: "l", Default: known(int64(1))}, // a list needs parentheses in a parameter's default
		}[:12]},
		"defaults that are none": {"param($a=$env:USERNAME,$b=\"$HOME/x\",$c=(Get-Date).AddDays(-1),$d=\"$(Get-Location) " +
			")\",$e=@{a=1;b=@(1,2)},$f=@('a',$b),$g=[Environment]::MachineName,$h={ param($x) $x })", []Parameter{
			{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"}, {Name: "g"}, {Name: "h"},
		}},
		"types": {"param([bool]$a,[System.Collections.Hashtable]$b,[double]$c,[Nullable[int]]$d,[object]$e,[System.IO.FileInfo]$f,[int[]]$g,[array]$h)", []Parameter{
			{Name: "a", Type: Boolean}, {Name: "b", Type: Object}, {Name: "c", Type: Number}, {Name: "d", Type: Integer},
			{Name: "e"}, {Name: "f", Type: String},
			{Name: "g", Type: Array, Items: Integer}, {Name: "h", Type: Array},
		}},
		"the type before an alias, a space before the name": {"param([string][Alias('c')] $configuration = 'Debug', " +
			"[switch] $List)", []Parameter{
			{Name: "configuration", Type: String, Aliases: []string{"c"}, Default: known("Debug")},
			{Name: "List", Type: Boolean, Switch: true},
		}},
		"what follows the block is not read": {"param([switch]$Fix)\nDynamicParam { param($x) }\nclass A { [string]$B " +
			"}\n$h = @'\nparam($y)\n'@\n", []Parameter{{Name: "Fix", Type: Boolean, Switch: true}}},
		"HelpMessage": {"param([Parameter(HelpMessage = \"Say `\"yes`\" or `$null\")]$a)",
			[]Parameter{{Name: "a", Description: `Say "yes" or $null`}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parsePowerShell(c.text)
			if diff := cmp.Diff(c.want, got.Parameters, cmpopts.EquateEmpty()); diff != "" || got.Note != "" {
				t.Errorf("%s (-want +got):\n%s", got.Note, diff)
			}
		})
	}
}

func TestParsePowerShellReadsTheHelp(t *testing.T) {
	got := parsePowerShell(
		"<#\n.SYNOPSIS\n\tFind in git.\n.DESCRIPTION\n  Runs git,\n  and prints.\n\n.PARAMETER Action\n   What to do:\n   " +
			"- show\n.PARAMETER gone\n   Not there.\n.EXAMPLE\n  ./x.ps1\n.NOTES\n text\n#>\n" +
			"[CmdletBinding()]\nparam(\n  # ignored, since there is help\n  [string]$Action,\n  # Lines at the top.\n  # None " +
			"for all.\n  [int]$Head)")
	want := Description{Synopsis: "Find in git.", Details: "Runs git,\nand prints.", Parameters: []Parameter{
		{Name: "Action", Type: String, Description: "What to do: - show"},
		{Name: "Head", Type: Integer, Description: "Lines at the top. None for all."},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := parsePowerShell("# .SYNOPSIS\n# In lines.\nparam($a)"); got.Synopsis != "In lines." {
		t.Errorf("help in lines: %+v", got)
	}
}

func TestABlockThatDoesNotEndIsSaid(t *testing.T) {
	for _, text := range []string{"param([string]$a", "param($a = 'x)", "param([Parameter(", "param("} {
		got := parsePowerShell(text)
		if got.Note == "" || len(got.Parameters) > 0 {
			t.Errorf("%q: %+v", text, got)
		}
		if _, ok := got.Schema()["properties"].(map[string]any)["args"]; !ok {
			t.Errorf("%q takes no plain words", text)
		}
	}
}

func TestSchemaOfParameters(t *testing.T) {
	got := parsePowerShell(
		"param([Parameter(Mandatory)][ValidateSet('a','b')][string]$One,[ValidateSet('x')][string[]]$Many=@(),[Parameter(Mandatory,ParameterSetName='s')][ValidateRange(1,2)][int]$N)").Schema()
	want := map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"One"},
		"properties": map[string]any{
			"One": map[string]any{"type": "string", "enum": []string{"a", "b"}},
			"Many": map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"x"}},
				"default": []any{}},
			"N": map[string]any{"type": "integer", "minimum": 1.0, "maximum": 2.0,
				"description": "Needed in the parameter set s."},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParsePowerShell(f *testing.F) {
	f.Add("param([Parameter(Mandatory)][ValidateSet('a',\"b$c\")][string[]]$One = @('x'), $b = \"$(f ')')\")")
	f.Add("<# .SYNOPSIS\n x #>\nusing x\n[A(b='c')]param(\n${a b},\n@'\n'@)")
	f.Fuzz(func(t *testing.T, text string) {
		d := parsePowerShell(text)
		_ = d.Schema()
		if strings.Count(text, "$") < len(d.Parameters) {
			t.Errorf("%d parameters in a text of %d variables", len(d.Parameters), strings.Count(text, "$"))
		}
	})
}
