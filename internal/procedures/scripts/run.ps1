# Runs a script with arguments that come as JSON on stdin, so that each value arrives as it is: {"path", "named", "plain"}.
# Texts begin with "=", and a table is {"table": [[name, value], ...]}: nothing is left that ConvertFrom-Json could take for something else.
function ConvertTo-Argument($value) {
    if ($value -is [string]) { return $value.Substring(1) }
    if ($value -is [System.Management.Automation.PSCustomObject]) {
        $table = @{}
        foreach ($pair in $value.table) { $table[$pair[0].Substring(1)] = ConvertTo-Argument $pair[1] }
        return $table
    }
    if ($value -is [System.Array]) {
        $list = New-Object System.Collections.ArrayList
        foreach ($item in $value) { [void]$list.Add((ConvertTo-Argument $item)) }
        return , $list.ToArray()
    }
    return $value
}

$utf8 = New-Object System.Text.UTF8Encoding $false
try { [Console]::OutputEncoding = $utf8 } catch { } # Windows has no console where nobody looks
$reader = New-Object System.IO.StreamReader ([Console]::OpenStandardInput()), $utf8
$call = $reader.ReadToEnd() | ConvertFrom-Json
$named = ConvertTo-Argument $call.named
$plain = ConvertTo-Argument $call.plain
$global:LASTEXITCODE = 0
& $call.path @named @plain
# As `pwsh -File` would: a script that came to its end has succeeded, whatever the programs ended with that it ran; one that left with `exit 3` has
# failed with 3, and one that could not take its arguments with 1. No try stands around it, since that would change what errors do within.
if ($?) { exit 0 }
if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
exit 1
