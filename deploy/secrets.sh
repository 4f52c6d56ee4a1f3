#!/bin/sh
# Makes the folder of secrets with one file for each, empty where there is none yet (an empty file counts as unset), and a
# token for the dashboard and REST. Files that exist are left alone. Usage: deploy/secrets.sh [FOLDER], ./secrets by default.
#
# The folder is its owner's alone. Run as root, the files in it belong to user 10001, that of the server in the container, and to nobody else.
# Otherwise they can be read by everybody who gets there, since compose mounts each by itself into a container that has other users; there
# Landlock has to keep agents from them.
set -eu
umask 077
folder=${1:-secrets}
mkdir -p "$folder"
chmod 700 "$folder"
for name in github_token github_app_private_key gitea_token claudeops_api_tokens claudeops_database_url claudeops_mark_key claudeops_audit_sink claudeops_apprise_urls \
    claudeops_webhook_url claudeops_webhook_secret github_webhook_secret gitea_webhook_secret fractary_registry_token anthropic_api_key \
    anthropic_auth_token claude_code_oauth_token; do
    file=$folder/$name
    [ -e "$file" ] || : >"$file"
    if [ "$(id -u)" = 0 ]; then
        chown 10001:10001 "$file"
        chmod 400 "$file"
    else
        chmod 644 "$file"
    fi
done
if ! [ -s "$folder/claudeops_api_tokens" ]; then
    od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' >"$folder/claudeops_api_tokens"
    echo "$folder/claudeops_api_tokens holds a new token: sign in to the dashboard with it"
fi
