package fakegithub

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// longestJWT is how long a signature may be valid from GitHub's point of view.
const longestJWT = 10 * time.Minute

// signed answers a request in the name of the app itself, if its signature holds.
func (i *appInstallation) signed(answer func(*exchange)) func(*exchange) {
	return func(a *exchange) {
		i.s.host.Locked(func() {
			status, wrong := i.checkJWT(a.r.Header.Get("Authorization"))
			if wrong != "" {
				a.fail(status, wrong)
				return
			}
			answer(a)
		})
	}
}

// checkJWT says what is wrong with a signature, in GitHub's words.
func (i *appInstallation) checkJWT(authorization string) (status int, wrong string) {
	const undecodable = "A JSON web token could not be decoded"
	scheme, token, _ := strings.Cut(authorization, " ")
	parts := strings.Split(token, ".")
	if lower(scheme) != "bearer" || len(parts) != 3 || i.app == nil {
		return http.StatusUnauthorized, undecodable
	}
	var header struct{ Alg, Typ string }
	var claims struct {
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
		Issuer   string `json:"iss"`
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decodePart(parts[0], &header) || !decodePart(parts[1], &claims) || header.Alg != "RS256" {
		return http.StatusUnauthorized, undecodable
	}
	now := i.app.now()
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	switch {
	case claims.Issuer != i.app.ID:
		return http.StatusNotFound, "Integration not found"
	case rsa.VerifyPKCS1v15(i.app.Key, crypto.SHA256, sum[:], signature) != nil:
		return http.StatusUnauthorized, undecodable
	case claims.IssuedAt > now.Unix():
		return http.StatusUnauthorized,
			"'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	case claims.Expires <= now.Unix():
		return http.StatusUnauthorized,
			"'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case claims.Expires > now.Add(longestJWT).Unix():
		return http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future"
	}
	return 0, ""
}

func decodePart(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// signs reports whether a request is one that an app makes in its own name.
func (i *appInstallation) signs(a *exchange) bool {
	path := a.r.URL.Path
	return path == "/app" || strings.HasPrefix(path, "/app/") || strings.HasSuffix(path, "/installation")
}
