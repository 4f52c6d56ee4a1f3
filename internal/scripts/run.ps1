# Runs a script with arguments that come as JSON on stdin, so that each value arrives as it is: {"path", "named", "plain"}.
$ErrorActionPreference = 'Stop'
[Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false
[Console]::InputEncoding = New-Object System.Text.UTF8Encoding $false

function ConvertTo-Argument($value) {
    if ($value -is [System.Management.Automation.PSCustomObject]) {
        $table = @{}
        foreach ($property in $value.PSObject.Properties) { $table[$property.Name] = ConvertTo-Argument $property.Value }
        return $table
    }
    if ($value -is [System.Array]) {
        return , @($value | ForEach-Object { ConvertTo-Argument $_ })
    }
    return $value
}

$call = [Console]::In.ReadToEnd() | ConvertFrom-Json
$named = @{}
foreach ($property in $call.named.PSObject.Properties) { $named[$property.Name] = ConvertTo-Argument $property.Value }
$plain = @($call.plain)
$global:LASTEXITCODE = 0
& $call.path @named @plain
exit $LASTEXITCODE
