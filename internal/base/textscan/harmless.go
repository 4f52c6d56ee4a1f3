package textscan

import (
	"encoding/base32"
	"encoding/base64"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// harmless says whether what a rule has found is known not to be a credential: a name, a version, a placeholder of
// documentation, an example that its provider publishes, or the letters of an alphabet in their order.
func harmless(rule, value string) bool {
	value = strings.Trim(value, "\"'`")
	switch rule {
	case "generic-api-key":
		return identifier(value) || alphabet(value) || published(value) || standIn(value) ||
			decoded(value, standInOrPublic) || cutShort(value) || objectName(value) || sealed(value)
	case "hashicorp-tf-password":
		return identifier(value) || standIn(value) || objectName(value)
	case "nuget-config-password", "netrc-password", "pgpass-password":
		return standIn(value)
	case "command-password":
		return standIn(value) || identifier(value) || cutShort(value) || value == "foobared" // of redis.conf
	case "named-password":
		const guessed = 10 // characters, from which on generic-api-key finds those without a sign
		return !generated(value) || len(value) >= guessed && !strings.ContainsAny(value, signs)
	case "flag-password", "assigned-password":
		return !generated(value)
	case "login-password":
		user, password, _ := strings.Cut(strings.Replace(value, "%", ":", 1), ":")
		return standIns(value) || user == password || !generated(password)
	case "zigbee-network-key":
		return strings.Join(strings.FieldsFunc(value, func(r rune) bool { return r < '0' || r > '9' }), " ") ==
			"1 3 5 7 9 11 13 15 0 2 4 6 8 10 12 13" // the documentation's
	case "curl-auth-header":
		return standIn(value) || identifier(value) || decoded(value, standIns)
	case "curl-auth-user":
		_, password, _ := strings.Cut(value, ":")
		return standIns(value) || standIn(unleet(password)) || password == "{{" // where a variable of a template begins
	case "url-password":
		return standIns(value)
	case "docker-config-auth":
		return decoded(value, standIns) || !decoded(value, func(text string) bool { return strings.Contains(text, ":") })
	case "kubernetes-secret-yaml":
		_, data, _ := strings.Cut(value, ":")
		data = strings.Trim(data, " \t\r\n|>+-\"'")
		return decoded(data, standInOrPublic) || camelWords(data) // the latter is the name of something in a block of YAML
	case "private-key":
		return !hasKey(value)
	case "nats-seed":
		return !seedOfNATS(value)
	case "sourcegraph-access-token":
		return !strings.Contains(value, "_") // without its mark it is any digest, such as a commit
	}
	return false
}

// hasForm says whether a rule looks for credentials that have a form of their own, rather than for anything that a name
// is assigned to.
func hasForm(rule string) bool {
	switch rule {
	case "generic-api-key", "hashicorp-tf-password", "nuget-config-password", "kubernetes-secret-yaml", "curl-auth-header",
		"curl-auth-user",
		"netrc-password", "pgpass-password", "url-password", "command-password", "named-password", "flag-password",
		"login-password",
		"assigned-password", "zigbee-network-key",
		"vpn-key", "jwk-private-key", "signed-url", "otp-secret", "npmrc-token",
		"azure-refresh-token":
		return false
	}
	return true
}

// withoutVariables is a value without the variables of a shell in it, whose names are in capitals.
func withoutVariables(value string) string {
	return regexp.MustCompile(`\$[A-Z_][A-Z0-9_]+`).ReplaceAllString(value, "")
}

// generated says whether a value looks like a password that was generated or chosen with care, and not like a name, a
// word, or what stands in the place of a password.
func generated(value string) bool {
	value = withoutParameters(strings.TrimRight(value, ".,:;"))
	bare := withoutVariables(value)
	if kinds(bare) < 3 || !strings.ContainsAny(bare, "0123456789") || !utf8.ValidString(value) {
		return false // what is not UTF-8 is the decoded form of something else
	}
	if strings.ContainsAny(bare, signs) {
		if kinds(bare) == 3 && kinds(unleet(bare)) == 1 { // a word, such as p4ssw@rd
			return false
		}
	} else if wordAndNumber(bare) || decoded(value, sentence) {
		return false
	}
	return !standIn(value) && !standIn(unleet(value)) && !identifier(value) && !objectName(value) && !alphabet(value) &&
		!cutShort(value) && !published(value) && !decoded(value, standInOrPublic) && !isAddress(value)
}

// withoutParameters returns what is before the next parameter in the query of an address, as far as nothing is encoded
// there.
func withoutParameters(value string) string {
	for _, escape := range []string{"%26", "%3D"} {
		value, _, _ = strings.Cut(value, escape)
	}
	before, behind, found := strings.Cut(value, "&")
	name, _, assigned := strings.Cut(behind, "=")
	if found && assigned && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_;") == "" {
		return before
	}
	return value
}

// signs are those that passwords have, and names and addresses hardly ever.
const signs = "!@#$%^&*~?"

// wordAndNumber says whether a value is letters with digits at their end.
func wordAndNumber(value string) bool {
	return !strings.ContainsAny(strings.TrimRight(value, "0123456789"), "0123456789")
}

// sentence says whether a text is one of several words or lines.
func sentence(text string) bool { return strings.ContainsAny(text, " \n") }

// kinds counts the kinds of characters of a value: capitals, small letters, digits, and signs.
func kinds(value string) (n int) {
	for _, kind := range []string{"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789", signs} {
		if strings.ContainsAny(value, kind) {
			n++
		}
	}
	return n
}

// isAddress says whether a value has an address of the web, a mailbox or a path in it.
func isAddress(value string) bool {
	if _, host, found := strings.Cut(value, "@"); found && identifier(host) && strings.Contains(host, ".") {
		return true
	}
	return strings.Contains(value, "://") || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./")
}

// unleet returns a word that is written with digits and signs for letters, such as P@ssw0rd.
func unleet(value string) string {
	letters := strings.NewReplacer("@", "a", "0", "o", "1", "i", "3", "e", "5", "s", "$", "s")
	return strings.Trim(letters.Replace(value), "!?")
}

// objectName says whether a value reads as the name of an object of Kubernetes or the like: two words and more, with
// what makes it its own at the end, such as a hash, a version or a number.
func objectName(value string) bool {
	const hash, words, letters = 10, 2, 3
	value = value[strings.LastIndexByte(value, '=')+1:]
	parts := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("-._/", r) })
	if len(parts) <= words || strings.ToLower(value) != value {
		return false
	}
	last := parts[len(parts)-1]
	if len(last) > hash {
		return false
	}
	long := 0
	for _, part := range parts[:len(parts)-1] {
		if len(part) >= letters && isWord(part) && strings.Trim(part, "0123456789") != "" {
			long++
		} else if len(part) > letters {
			return false
		}
	}
	return long >= words
}

// sealed says whether a value is one of a SealedSecret: a session key of 512 bytes that only its cluster can read, with
// its length before it, and what that encrypts.
func sealed(value string) bool {
	const least = 700 // digits of base64
	return len(value) >= least && strings.HasPrefix(value, "Ag") && value[2] >= 'A' && value[2] <= 'D'
}

// published says whether a value is an example key of the documentation of Amazon Web Services.
func published(value string) bool {
	value = strings.ReplaceAll(value, "/", "")
	return value == "AKIA"+"IOSFODNN7EXAMPLE" || value == "wJalrXUtnFEMIK7MDENG"+"bPxRfiCYEXAMPLEKEY"
}

// cutShort says whether dots stand in the place of most of a value.
func cutShort(value string) bool {
	const most = 20 // characters before and behind them
	before, behind, found := strings.Cut(value, "...")
	return found && len(before) <= most && len(strings.TrimLeft(behind, ".")) <= most
}

// alphabet says whether nearly every character of a value is the one after the character before it.
func alphabet(value string) bool {
	steps := 0
	for i := 1; i < len(value); i++ {
		if value[i] == value[i-1]+1 {
			steps++
		}
	}
	const maxBreaks = 5 // between digits, capitals, small letters and what follows them
	return len(value) >= 16 && len(value)-1-steps <= maxBreaks
}

// decoded says whether a value is text in base64 of which is holds.
func decoded(value string, is func(text string) bool) bool {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	if err != nil || !utf8.Valid(data) {
		return false
	}
	return is(strings.TrimSpace(string(data)))
}

// standInOrPublic says whether a decoded value is a stand-in, a certificate, or a block of a private key without a key.
func standInOrPublic(text string) bool {
	switch {
	case strings.Contains(text, "PRIVATE KEY"):
		return !hasKey(text)
	case strings.HasPrefix(text, "-----BEGIN CERTIFICATE"):
		return true
	}
	return standIn(text) && strings.IndexFunc(text, unicode.IsControl) < 0
}

// camelWords says whether a value is one or more words of letters, such as recipientUrls.
func camelWords(value string) bool {
	const least = 3 // letters
	for word := range camelCase(value) {
		if len(word) < least || !ordinary(word) || strings.ContainsAny(word, "0123456789+/=") {
			return false
		}
	}
	return value != ""
}

// standIns says whether user and password are words that documentation uses in their place, or are read from a file
// when a command runs. A password that is the user's name is one.
func standIns(value string) bool {
	user, password, found := strings.Cut(value, ":")
	return found && (standIn(password) || user == password && isWord(user) || password == "" && isPlainWords(user))
}

// standIn says whether a value stands in the place of a password: a variable, a mark such as <password>, ***, or words
// that documentation uses, such as your-api-key or Password123.
func standIn(value string) bool {
	const longest = 48 // characters of words
	value = strings.Trim(value, "\"'`")
	if isVariable(value) {
		return true
	}
	if len(value) > longest {
		return false
	}
	names := false
	for word := range wordsIn(value) {
		for part := range camelCase(word) {
			letters := strings.TrimRight(part, "0123456789")
			if digits := part[len(letters):]; !isWord(part) && (letters == "" || !strings.HasPrefix("1234567890", digits)) {
				return false
			}
			names = names || tellsItself(strings.ToLower(letters))
		}
	}
	return names
}

// isVariable says whether a value is a variable, or a mark in the place of a value.
func isVariable(value string) bool {
	for _, brackets := range []string{"<>", "[]", "{}"} {
		inner, found := strings.CutPrefix(strings.TrimPrefix(value, "$"), brackets[:1])
		inner, closed := strings.CutSuffix(inner, brackets[1:])
		if found && closed && !strings.ContainsAny(strings.Trim(inner, "{}"), brackets) {
			return true
		}
	}
	const name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	if file, found := strings.CutPrefix(value, "$(cat "); found {
		return strings.Trim(strings.TrimSuffix(file, ")"), name+"./-") == "" && len(file) <= 60
	}
	if of, found := strings.CutPrefix(value, "%("); found {
		return strings.Trim(strings.TrimSuffix(of, ")s"), name) == ""
	}
	if strings.HasPrefix(value, "$") || strings.HasPrefix(value, "%") {
		return strings.Trim(value[1:], name+"0123456789%") == ""
	}
	if len(value) < 3 {
		return false
	}
	const longest = 32
	return strings.Trim(value, "*.•…xX-") == "" || len(value) <= longest &&
		strings.Trim(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" && strings.Trim(value[:2], "_") == value[:2]
}

// camelCase calls yield with the words that capitals divide a word in, such as "new", "Root", "Password123". If there
// are more than four, the capitals count as random letters and not as words.
func camelCase(word string) func(yield func(part string) bool) {
	const most = 4
	starts := []int{0}
	for i := 1; i < len(word); i++ {
		if unicode.IsUpper(rune(word[i])) && unicode.IsLower(rune(word[i-1])) {
			starts = append(starts, i)
		}
	}
	if len(starts) > most {
		starts = starts[:1]
	}
	return func(yield func(part string) bool) {
		for i, start := range starts {
			end := len(word)
			if i+1 < len(starts) {
				end = starts[i+1]
			}
			if !yield(word[start:end]) {
				return
			}
		}
	}
}

// tellsItself says whether a word in small letters is one of those that documentation has in the place of passwords.
func tellsItself(word string) bool {
	switch word {
	case "user", "username", "name", "login", "admin", "root", "guest", "test", "testing", "pw", "pwd", "pass", "key",
		"example", "foo", "bar", "mock", "stub",
		"baz", "foobar", "xxx", "demo", "sample", "dummy", "fake", "default", "changeme", "changeit", "replace", "redacted",
		"placeholder",
		"minioadmin", "postgres", "mysql":
		return true
	}
	for _, of := range []string{"my", "your", "our", "the", "root", "user", "admin", "db", "super", "api", "auth",
		"access", "new", "test", "clear", "text"} {
		word = strings.TrimPrefix(word, of)
	}
	switch strings.TrimSuffix(word, "s") {
	case "password", "passwd", "passphrase", "secret", "token", "credential", "key", "pas":
		return true
	}
	return false
}

// hasKey says whether a block of a private key has data of a key: 64 characters of base64 in words of 16 and more.
func hasKey(block string) bool {
	const least, word = 64, 16
	_, block, _ = strings.Cut(block, "KEY")
	data := 0
	for _, line := range strings.FieldsFunc(block, func(r rune) bool {
		return r >= utf8.RuneSelf || !isAlphanumeric(byte(r)) && r != '+' && r != '/'
	}) {
		line = strings.TrimPrefix(line, "n") // of a line break that is escaped
		if len(line) >= word {
			data += len(line)
		}
	}
	return data >= least
}

// seedOfNATS says whether a value ends with the check sum of what is before it, as seeds of NATS do: CRC-16, the lower
// byte first.
func seedOfNATS(value string) bool {
	data, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(value)
	if err != nil {
		return false
	}
	const sum, polynomial = 2, 0x1021 // sum in bytes
	body, end := data[:len(data)-sum], data[len(data)-sum:]
	var crc uint16
	for _, b := range body {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= polynomial
			}
		}
	}
	return crc == uint16(end[1])<<8|uint16(end[0])
}

// identifier says whether a value reads as a name rather than as a secret: two or more words, such as
// "claude-ops-token-v2", "oauth2_client", "apps.kubernetes.io/name" or "rc0.15.0_20231217". A word is letters with up
// to three digits at its end, a number of up to four digits, a date, or anything of up to three characters.
func identifier(value string) bool {
	words := strings.FieldsFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	for _, word := range words {
		if len(word) > 3 && !isWord(word) {
			return false
		}
	}
	return len(words) > 1
}

// isWord says whether a word is letters with up to three digits at its end, a number of four digits, or a date in
// eight.
func isWord(word string) bool {
	letters := strings.TrimRight(word, "0123456789")
	digits := len(word) - len(letters)
	if letters == "" {
		return digits <= 4 || digits == 8 && (strings.HasPrefix(word, "20") || strings.HasPrefix(word, "19"))
	}
	return digits <= 3 && !strings.ContainsAny(letters, "0123456789")
}
