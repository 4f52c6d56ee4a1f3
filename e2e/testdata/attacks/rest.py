# Reaches the operator's REST and dashboard on loopback without a token.
import urllib.request, urllib.error


def ask(method, path, body=None, **headers):
    def attempt():
        request = urllib.request.Request("http://" + ADDRESS + path, method=method, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status < 300 and "/login" not in answer.geturl() and "sign" not in answer.geturl()
        except urllib.error.HTTPError:
            return False
    return attempt


body = json.dumps(proposal("By REST")[1]).encode()
for path in ("/", "/proposals", "/audit", "/sessions", "/api/v1/proposals", "/api/v1/audit", "/api/v1/policy", "/api/v1/sessions", "/api/v1/providers", "/metrics"):
    way("GET " + path, ask("GET", path))
    way("HEAD " + path, ask("HEAD", path))
way("POST /api/v1/prs", ask("POST", "/api/v1/prs", body, **{"Content-Type": "application/json"}))
way("POST with another host", ask("POST", "/api/v1/prs", body, **{"Content-Type": "application/json", "Host": "localhost", "X-Forwarded-User": "admin", "X-Forwarded-For": "127.0.0.1", "Remote-User": "admin"}))
way("POST with an empty token", ask("POST", "/api/v1/prs", body, **{"Content-Type": "application/json", "Authorization": "Bearer "}))
way("POST a session", ask("POST", "/api/v1/sessions", b'{"tier":3}', **{"Content-Type": "application/json"}))
