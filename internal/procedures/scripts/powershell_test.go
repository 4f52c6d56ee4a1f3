package scripts

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
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
	operationtest.Same(t, "the description", want, got, cmpopts.EquateEmpty())
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
	operationtest.Same(t, "the schema", want, got)
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

// told is a parameter in one line: name, type, "!" if it is mandatory, default, set, range or pattern, sets that need
// it, aliases.
func told(p Parameter) string {
	kind := string(p.Type)
	switch {
	case p.Switch:
		kind = "switch"
	case p.Type == Array:
		kind = string(p.Items) + "[]"
	}
	text := strings.TrimSpace(p.Name + " " + kind)
	if p.Required {
		text += "!"
	}
	if p.Default.Known {
		value, _ := json.Marshal(p.Default.Value) // constants always marshal
		text += " = " + string(value)
	}
	if len(p.Values) > 0 {
		text += " of " + strings.Join(p.Values, "|")
	}
	if p.Range.Min != nil && p.Range.Max != nil {
		text += fmt.Sprintf(" from %s to %s", strconv.FormatFloat(*p.Range.Min, 'f', -1, 64),
			strconv.FormatFloat(*p.Range.Max, 'f', -1, 64))
	}
	if p.Pattern.Text != "" {
		text += " like " + p.Pattern.Text
	}
	if len(p.RequiredIn) > 0 {
		text += " needed in " + strings.Join(p.RequiredIn, "|")
	}
	if len(p.Aliases) > 0 {
		text += " alias " + strings.Join(p.Aliases, "|")
	}
	return text
}

// TestParametersOfRealScripts holds what was found in scripts of sillsdev/FieldWorks, dotnet/arcade and
// PowerShell/PowerShell, by path. The blocks are written anew: they have the same parameters, in the forms in which
// those scripts write them.
func TestParametersOfRealScripts(t *testing.T) {
	for path, c := range realParameters() {
		t.Run(path, func(t *testing.T) {
			got := parsePowerShell(c.text)
			var lines []string
			for _, p := range got.Parameters {
				lines = append(lines, told(p))
			}
			if diff := cmp.Diff(strings.Split(c.want, "\n"), lines); diff != "" || got.Note != "" {
				t.Errorf("%s (-want +got):\n%s", got.Note, diff)
			}
		})
	}
}

// realScript is the block of a script, and what each parameter of it must be.
type realScript struct{ text, want string }

func realParameters() map[string]realScript {
	return map[string]realScript{
		"FieldWorks scripts/Agent/Git-Search.ps1": {
			"<#\n.SYNOPSIS\n  Reads git.\n.PARAMETER Action\n  What\n#>\n[CmdletBinding()]\nparam(\n  " +
				"[Parameter(Mandatory=$true)]\n  [ValidateSet('show','diff','log','blame','search','branches','files')]\n  " +
				"[string]$Action,\n\n" +
				"  [string]$Ref = 'HEAD',\n  [string]$Path,\n  [string]$Pattern,\n  [string]$RepoPath,\n  [int]$HeadLines = 0,\n " +
				" [int]$TailLines = 0,\n  [int]$Context = 3\n  ,\n  [ValidateSet('oneline','fuller')]\n  [string]$LogStyle = " +
				"'oneline',\n  [int]$MaxCount = 20\n)\n",
			"Action string! of show|diff|log|blame|search|branches|files\nRef string = \"HEAD\"\nPath string\nPattern " +
				"string\nRepoPath string\nHeadLines integer = 0\nTailLines integer = 0\nContext integer = 3\n" +
				"LogStyle string = \"oneline\" of oneline|fuller\nMaxCount integer = 20",
		},
		"FieldWorks scripts/Agent/Read-FileContent.ps1": {
			"[CmdletBinding()]\r\nparam(\r\n\t[Parameter(Mandatory = $true)]\r\n\t[string]$Path,\r\n\t[int]$HeadLines = " +
				"0,\r\n\t[int]$TailLines = 0,\r\n\t[switch]$LineNumbers,\r\n\t[string]$Pattern\r\n)\r\n",
			"Path string!\nHeadLines integer = 0\nTailLines integer = 0\nLineNumbers switch\nPattern string",
		},
		"FieldWorks scripts/Agent/Jira-Beads-FromSelection.ps1": {
			"param(\n  [string]$Jql = 'project = X AND status != Done AND assignee = currentUser()',\n  " +
				"[string]$SelectionFile = \"\",\n  [string]$OutputFile = \"\"\n)",
			"Jql string = \"project = X AND status != Done AND assignee = currentUser()\"\nSelectionFile string = " +
				"\"\"\nOutputFile string = \"\"",
		},
		"FieldWorks scripts/Agent/Invoke-CppTest.ps1": {
			"param(\n [ValidateSet('Build','Run','BuildAndRun')] [string]$Action = 'BuildAndRun',\n " +
				"[ValidateSet('TestGeneric','TestViews')] [string]$TestProject = 'TestGeneric',\n " +
				"[ValidateSet('Debug','Release')] [string]$Configuration = 'Debug',\n" +
				" [ValidateSet('MSBuild','NMake')] [string]$BuildSystem = 'MSBuild',\n [switch]$UseLocalClone = $true,\n " +
				"[string]$LocalCloneRoot = 'C:\\fw-local',\n [int]$TimeoutSeconds = 300,\n [string[]]$TestArguments,\n " +
				"[string]$LogPath,\n [switch]$NoDocker,\n [switch]$SyncLocalClone,\n [string]$WorktreePath\n)",
			"Action string = \"BuildAndRun\" of Build|Run|BuildAndRun\nTestProject string = \"TestGeneric\" of " +
				"TestGeneric|TestViews\nConfiguration string = \"Debug\" of Debug|Release\nBuildSystem string = \"MSBuild\" of " +
				"MSBuild|NMake\n" +
				"UseLocalClone switch = true\nLocalCloneRoot string = \"C:\\\\fw-local\"\nTimeoutSeconds integer = " +
				"300\nTestArguments string[]\nLogPath string\nNoDocker switch\nSyncLocalClone switch\nWorktreePath string",
		},
		"FieldWorks scripts/Agent/Collect-InstallerSnapshot.ps1": {
			"param(\n [Parameter(Mandatory)][string]$OutputPath,\n [string]$Name = 'snapshot',\n [string[]]$RegistryRoots = " +
				"@(\n  'HKLM:\\A',\n  'HKLM:\\B',\n  'HKCU:\\C'\n ),\n [string[]]$FileRoots = @(\n  '$env:ProgramFiles\\A', " +
				"'$env:ProgramFiles(x86)\\B', 'c',\n  'd', 'e', 'f', 'g'\n ),\n" +
				" [string[]]$DependencyRoots = @('a','b','c'),\n [string[]]$UninstallNamePatterns = @('*a*','*b*','*c*'),\n " +
				"[string[]]$DependencyNamePatterns = @('a*','b*','c*'),\n [int]$MaxFileCount = 20000\n)",
			"OutputPath string!\nName string = \"snapshot\"\nRegistryRoots string[] = " +
				"[\"HKLM:\\\\A\",\"HKLM:\\\\B\",\"HKCU:\\\\C\"]\nFileRoots string[] = " +
				"[\"$env:ProgramFiles\\\\A\",\"$env:ProgramFiles(x86)\\\\B\",\"c\",\"d\",\"e\",\"f\",\"g\"]\n" +
				"DependencyRoots string[] = [\"a\",\"b\",\"c\"]\nUninstallNamePatterns string[] = " +
				"[\"*a*\",\"*b*\",\"*c*\"]\nDependencyNamePatterns string[] = [\"a*\",\"b*\",\"c*\"]\nMaxFileCount integer = 20000",
		},
		"FieldWorks scripts/Agent/New-HyperVTestVm.ps1": {
			"param(\n [Parameter(Mandatory=$true)]\n [string]$VMName,\n [ValidateSet('Windows 11','Windows 10')]\n " +
				"[string]$FidoWin = 'Windows 11',\n [ValidateSet('x64','ARM64','x86')]\n [string]$FidoArch = 'x64',\n " +
				"[Alias('VhdSizeGB')]\n [int]$VhdSizeGiB = 80,\n" +
				" [ValidateRange(1, 64)]\n [int]$ProcessorCount = 2,\n [ValidateRange(536870912, 68719476736)]\n # in bytes\n " +
				"[long]$MemoryStartupBytes = 4294967296\n)",
			"VMName string!\nFidoWin string = \"Windows 11\" of Windows 11|Windows 10\nFidoArch string = \"x64\" of " +
				"x64|ARM64|x86\nVhdSizeGiB integer = 80 alias VhdSizeGB\nProcessorCount integer = 2 from 1 to 64\n" +
				"MemoryStartupBytes integer = 4294967296 from 536870912 to 68719476736",
		},
		"FieldWorks scripts/Agent/Get-WindowsIso.ps1": {
			"[CmdletBinding(DefaultParameterSetName = 'Fido')]\nparam(\n [Parameter(Mandatory = $true, ParameterSetName = " +
				"'Url')]\n [string]$IsoUrl,\n [Parameter(ParameterSetName = 'Fido')]\n [string]$Win = 'Windows 11',\n " +
				"[Parameter(ParameterSetName = 'Fido')]\n [string]$Arch = 'x64',\n" +
				" [Parameter(ParameterSetName = 'Fido')]\n [string]$FidoDownloadUrl = 'https://example.org/x.ps1#y,(z)',\n " +
				"[switch]$Force\n)",
			"IsoUrl string needed in Url\nWin string = \"Windows 11\"\nArch string = \"x64\"\nFidoDownloadUrl string = " +
				"\"https://example.org/x.ps1#y,(z)\"\nForce switch",
		},
		"FieldWorks scripts/Agent/Set-HyperVGuestCredential.ps1": {
			"[Diagnostics.CodeAnalysis.SuppressMessageAttribute(\n 'PSAvoidUsingX', '',\n Justification = 'It asks (a " +
				"person), and keeps it.'\n)]\n[CmdletBinding()]\nparam(\n [Parameter(Mandatory)]\n [string]$VMName,\n " +
				"[string]$UserName,\n [switch]$Force,\n [switch]$Clear\n)",
			"VMName string!\nUserName string\nForce switch\nClear switch",
		},
		"FieldWorks scripts/Agent/Setup-HyperVHostPermissions.ps1": {
			"param(\n [string]$UserName = [System.Security.Principal.WindowsIdentity]::GetCurrent().Name,\n " +
				"[bool]$EnsureHyperVAdministrators = $true,\n [switch]$ValidateOnly,\n [switch]$NoElevate\n)",
			"UserName string\nEnsureHyperVAdministrators boolean = true\nValidateOnly switch\nNoElevate switch",
		},
		"FieldWorks .specify/scripts/powershell/create-new-feature.ps1": {
			"#!/usr/bin/env pwsh\n# Make a feature.\n[CmdletBinding()]\nparam(\n [switch]$Json,\n [string]$ShortName,\n " +
				"[int]$Number = 0,\n [switch]$Help,\n [Parameter(Position = 0, ValueFromRemainingArguments = $true)]\n " +
				"[string[]]$FeatureDescription\n)",
			"Json switch\nShortName string\nNumber integer = 0\nHelp switch\nFeatureDescription string[]",
		},
		"arcade eng/common/build.ps1": {
			"[CmdletBinding(PositionalBinding=$false)]\nParam(\n  [string][Alias('c')]$configuration = \"Debug\",\n  " +
				"[string]$platform = $null,\n  [string][Alias('v')]$verbosity = \"minimal\",\n  [bool] $warnAsError = $true,\n  " +
				"[bool] $nodeReuse = $true,\n  [switch][Alias('r')]$restore,\n  " +
				"[Parameter(ValueFromRemainingArguments=$true)][String[]]$properties\n)",
			"configuration string = \"Debug\" alias c\nplatform string = null\nverbosity string = \"minimal\" alias " +
				"v\nwarnAsError boolean = true\nnodeReuse boolean = true\nrestore switch alias r\nproperties string[]",
		},
		"PowerShell tools/UpdateDotnetRuntime.ps1": {
			"# Copyright (c) some, and others.\n\n[CmdletBinding()]\nparam (\n    [Parameter()]\n    " +
				"[string]$SDKVersionOverride,\n    [Parameter()]\n    [switch]$UpdateMSIPackaging,\n    [Parameter()]\n    " +
				"[string]$RuntimeSourceFeed,\n    [Parameter()]\n    [string]$RuntimeSourceFeedKey,\n    [Parameter()]\n    " +
				"[switch]$InteractiveAuth\n)\n",
			"SDKVersionOverride string\nUpdateMSIPackaging switch\nRuntimeSourceFeed string\nRuntimeSourceFeedKey " +
				"string\nInteractiveAuth switch",
		},
		"PowerShell tools/releaseBuild/setReleaseTag.ps1": {
			"param(\n    [Parameter(HelpMessage='Tag; \"x\", or $null (none) for today''s')]\n    [string]$ReleaseTag,\n    " +
				"[Parameter(HelpMessage=\"Branch\")]\n    [string]$Branch = $env:BUILD_SOURCEBRANCH,\n    [string]$Variable = " +
				"\"ReleaseTag\",\n    [switch]$CreateJson\n)\n",
			"ReleaseTag string\nBranch string\nVariable string = \"ReleaseTag\"\nCreateJson switch",
		},
		"PowerShell tools/releaseBuild/vstsbuild.ps1": {
			"[cmdletbinding(DefaultParameterSetName='Build')]\nparam(\n    " +
				"[ValidatePattern(\"^v\\d+\\.\\d+\\.\\d+(-\\w+(\\.\\d{1,2})?)?$\")]\n    [ValidateNotNullOrEmpty()]\n    " +
				"[string]$ReleaseTag,\n    [Parameter(Mandatory, ParameterSetName=\"packageSigned\")]\n    [string] " +
				"$BuildPath,\n    [Parameter(Mandatory, ParameterSetName=\"packageSigned\")]\n    [string] " +
				"$SignedFilesPath\n)\n\nDynamicParam {\n    param($Name)\n}\n",
			"ReleaseTag string like ^v\\d+\\.\\d+\\.\\d+(-\\w+(\\.\\d{1,2})?)?$\nBuildPath string needed in " +
				"packageSigned\nSignedFilesPath string needed in packageSigned",
		},
		"PowerShell tools/releaseBuild/macOS/PowerShellPackageVsts.ps1": {
			"param (\n    [string]$location = $env:BUILD_REPOSITORY_LOCALPATH,\n    [Parameter(Mandatory)]\n    " +
				"[string]$destination = '/mnt',\n    [Parameter(Mandatory, HelpMessage='The tag (v1.0.0)')]\n    " +
				"[ValidateNotNullOrEmpty()]\n    [string]$ReleaseTag,\n    [ValidateSet(\"zip\", \"tar\")]\n    " +
				"[string[]]$ExtraPackage,\n" +
				"    [Parameter(Mandatory, ParameterSetName = 'Zip')]\n    [ValidatePattern(\"-signed.zip$\")]\n    " +
				"[string]$BuildZip,\n    [string]$ArtifactName = 'result'\n)\n",
			"location string\ndestination string! = \"/mnt\"\nReleaseTag string!\nExtraPackage string[] of zip|tar\nBuildZip " +
				"string like -signed.zip$ needed in Zip\nArtifactName string = \"result\"",
		},
		"PowerShell tools/clearlyDefined/ClearlyDefined.ps1": {
			"param(\n    [parameter(ParameterSetName='harvest', Mandatory)]\n    [switch]\n    $Harvest,\n    " +
				"[parameter(ParameterSetName='test', Mandatory)]\n    [switch]\n    $Test,\n    [switch]\n    " +
				"$ForceModuleReload\n)\n",
			"Harvest switch needed in harvest\nTest switch needed in test\nForceModuleReload switch",
		},
		"PowerShell tools/findMissingNotices.ps1": {
			"param(\n    [switch] $Fix,\n    [switch] $IsStable\n)\n\nclass Registration {\n    [string]$Type\n}\nfunction " +
				"New-X {\n    param(\n        [Parameter(Mandatory)][string]$Name\n    )\n}\n",
			"Fix switch\nIsStable switch",
		},
	}
}

func TestAdviceNamesWhatATierMayRun(t *testing.T) {
	l := Listing{Scripts: []Script{
		{Name: "check_disk", Description: Description{Synopsis: "Check the disk.\nAnd more."},
			ScriptSettings: ScriptSettings{Tier: 1}},
		{Name: "restart", Path: "/s/restart.sh", ScriptSettings: ScriptSettings{Tier: 2}},
		{Name: "raised", Description: Description{Synopsis: strings.Repeat("ü", 200)},
			ScriptSettings: ScriptSettings{Tier: 1}},
	}}
	least := func(tool string) int { return map[string]int{"raised": 3}[tool] }
	for tier, names := range map[int]string{0: "", 1: "check_disk", 2: "check_disk restart",
		3: "check_disk restart raised"} {
		got := l.Advice("claudeops", tier, least)
		for _, s := range l.Scripts {
			if strings.Contains(got, "`mcp__claudeops__"+s.Name+"`") != strings.Contains(names, s.Name) {
				t.Errorf("tier %d is told\n%s", tier, got)
			}
		}
		if (got == "") != (names == "") || names != "" && !strings.Contains(got, "not a shell command") {
			t.Errorf("tier %d is told\n%s", tier, got)
		}
	}
	for _, line := range []string{"- `mcp__claudeops__check_disk`: Check the disk. From tier 1.\n",
		"- `mcp__claudeops__restart`: Run /s/restart.sh. From tier 2.\n", "ü ... From tier 3.\n"} {
		if got := l.Advice("claudeops", 3, least); !strings.Contains(got, line) {
			t.Errorf("not told is %q, but\n%s", line, got)
		}
	}
	for i := range 1000 {
		l.Scripts = append(l.Scripts, Script{Name: fmt.Sprint("n", i), ScriptSettings: ScriptSettings{Tier: 1}})
	}
	if got := l.Advice("claudeops", 1, least); !strings.Contains(got, "961 more") || len(got) > 10<<10 {
		t.Errorf("of many scripts: %d bytes\n%.300s", len(got), got)
	}
}

func TestPatternsStandInTheSchemaWhereTheyMeanTheSame(t *testing.T) {
	for text, want := range map[string]string{
		`^\d{3}-\d+$`: `^\d{3}-\d+$`, `^[a-z][a-z0-9_-]*$`: `^[a-zA-Z][a-zA-Z0-9_-]*$`, `^v\.`: `^[Vv]\.`,
		`[^A-Cx]`: `[^A-Ca-cxX]`,
		`[A-z]`:   `[A-z]`, `[0-Z]`: `[0-Za-z]`, `.`: `[^\n]`, `(?:1|2)(?=3)(?!4)`: `(?:1|2)(?=3)(?!4)`,
		`\#\-\ [\-.]`: `#- [\-.]`, `1{2,}?`: `1{2,}?`,
		`\w+`: "", `\bx`: "", `(?i)x`: "", `(?<n>1)`: "", `\A1\z`: "", `(1)\1`: "", `[a-z-[aeiou]]`: "", `[]1]`: "", `ä`: "",
		`[ä]`: "", `\p{L}`: "",
		`1{`: "", `1}`: "", `]`: "", `[1`: "", `\`: "", `(`: "", `*`: "", `\u0041`: "", `[[]`: "", `[\.-9]`: "", `[!-\.]`: "",
		`[-1]`: "", `{,2}`: "",
		strings.Repeat("1", maxPattern+1): "",
	} {
		if got := (Pattern{Text: text}).schema(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{`^v[a-f]$`: `^v[a-f]$`, `ä[ö]`: `ä[ö]`} {
		if got := (Pattern{Text: text, CaseSensitive: true}).schema(); got != want {
			t.Errorf("%s with letter case: %s, want %s", text, got, want)
		}
	}
	if got := (Pattern{Text: "1", Other: true}).schema(); got != "" {
		t.Errorf("with other options: %s", got)
	}
}

func TestTextsThatAPatternDoesNotTakeAreRefused(t *testing.T) {
	script := Script{Name: "s", Interpreter: PowerShell, Description: parsePowerShell(`param(
[ValidatePattern('^[a-z]+$')]$Any,
[ValidatePattern('^[a-z]+$', Options = 'None')][string]$Cased,
[ValidatePattern("^(?i)v(?<major>\d+)\w$", Options=[System.Text.RegularExpressions.RegexOptions]::None)]$Net,
[ValidatePattern('^a$', Options = 'Multiline')]$Other,
[ValidatePattern('^a$', ErrorMessage = 'b')][string[]]$Many,
[ValidatePattern('(')]$Broken,
[ValidatePattern('^(1+)+$')]$Slow)`)}
	if script.Note != "" || len(script.Parameters) != 7 {
		t.Fatalf("%+v", script.Description)
	}
	for _, c := range []struct {
		name    string
		value   any
		refused bool
	}{
		{"Any", "ABC", false}, {"Any", "abc\n", false}, {"Any", "a1", true}, {"Any", "", true}, {"Cased", "abc", false},
		{"Cased", "ABC", true},
		{"Net", "V1ä", false}, {"Net", "v", true}, {"Other", "b\na", false}, {"Many", []any{"a", "A"}, false},
		{"Many", []any{"a", "b"}, true},
		{"Broken", "x", false}, {"Slow", strings.Repeat("1", 60) + "x", false},
	} {
		if got := script.Check(map[string]any{c.name: c.value}); (len(got) > 0) != c.refused {
			t.Errorf("%s %q: %v", c.name, c.value, got)
		}
	}
	properties := script.Schema()["properties"].(map[string]any)
	for name, want := range map[string]any{"Any": "^[a-zA-Z]+$", "Cased": "^[a-z]+$", "Net": nil, "Other": nil} {
		if got := properties[name].(map[string]any)["pattern"]; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := properties["Many"].(map[string]any)["items"].(map[string]any)["pattern"]; got != "^[aA]$" &&
		got != "^[Aa]$" {
		t.Errorf("a list's pattern: %v", got)
	}
	if got := properties["Net"].(map[string]any)["description"]; got != `Must match ^(?i)v(?<major>\d+)\w$.` {
		t.Errorf("%v", got)
	}
}

// Whatever the schema refuses, PowerShell refuses, and the other way round, but for a line end at the end.
func FuzzPatternInTheSchema(f *testing.F) {
	for _, pattern := range []string{`^[a-z][a-z0-9_-]*$`, `^v\d+\.\d+(-rc\d{1,2})?$`, `(?:a|B)+?[^x-z]`, `[A-z0-Z,-.]`,
		`\s\S\D`, `.`} {
		f.Add(pattern, "v1.2-RC3", false)
	}
	f.Fuzz(func(t *testing.T, text, value string, cased bool) {
		p := Pattern{Text: text, CaseSensitive: cased}
		translated := p.schema()
		if translated == "" || strings.HasSuffix(value, "\n") ||
			strings.ContainsFunc(value, func(r rune) bool { return r >= 0x80 }) {
			return
		}
		there, err := regexp2.Compile(translated, regexp2.ECMAScript|regexp2.Unicode)
		must.Do(t, err)
		there.MatchTimeout = patternTime
		matches, err := there.MatchString(value)
		if err == nil && matches == p.refuses(value) {
			t.Errorf("%q as %q disagree about %q: %t", text, translated, value, matches)
		}
	})
}
