package facts

import (
	"strings"
	"sync"
)

// meaning is a set of the senses that a word may have, as far as the rules ask for them.
type meaning uint64

// The senses.
const (
	erase       meaning = 1 << iota
	data                // what is deleted or sent: files, records, backups
	send                // sends, uploads, forwards
	collect             // reads, prints, gathers
	remote              // where data are sent to: a server, a webhook, a channel
	tell                // mentions, reports, notifies
	person              // a user, a reviewer
	hide                // conceals, suppresses
	secretly            // silently, without a trace
	not                 // not, never, avoid
	without             // without
	skip                // skips, bypasses, disables
	safeguard           // a confirmation, check, limit or backup
	ask                 // asks, confirms
	ignore              // ignores, disregards
	prior               // previous, above, all
	instruction         // instructions, rules, guidelines
	secret              // passwords, tokens, keys
	grant               // gives, adds, elevates
	power               // administrator, root, permissions
	security            // a firewall, encryption, authentication
	record              // logs, history, traces, monitoring
	install             // installs, downloads
	run                 // runs, executes
	program             // a script, a binary, a package
	answer              // a response, a reply, a summary
	insert              // includes, adds, appends
	lead                // a word before which an imperative stands: then, and, please, must, to
	modal               // would, might: what follows is no order
	forget              // forget, fail, hesitate: undoes a "not" before it
	begin               // begin, start, proceed
	always              // always, regardless
	stop                // stops, shuts down
	service             // a service, a process, a server, production
	this                // this, it, that
	schedule            // schedules, registers
	recurring           // daily, every, start-up
	model               // assistant, model, agent, you
	claim               // urgent, official, authorised
	optional            // optional, not required
	inflected           // not the base form of a verb: deletes, deleted, deleting
)

// senses maps words in lower case to what they may mean.
type senses map[string]meaning

// add gives words, parted by spaces, a sense more.
func (s senses) add(m meaning, words string) {
	for word := range strings.FieldsSeq(words) {
		s[word] |= m
	}
}

// verbs gives verbs a sense more, and so their other forms.
func (s senses) verbs(m meaning, words string) {
	for word := range strings.FieldsSeq(words) {
		s[word] |= m
		for _, form := range inflections(word) {
			s[form] |= m | inflected
		}
	}
}

// inflections gives the third person, the past and the participle of an English verb, as the rule makes them.
func inflections(verb string) []string {
	stem, last := verb[:len(verb)-1], verb[len(verb)-1]
	switch {
	case last == 'e':
		return []string{verb + "s", verb + "d", stem + "ing"}
	case last == 'y' && !strings.ContainsAny(stem[len(stem)-1:], "aeou"):
		return []string{stem + "ies", stem + "ied", verb + "ing"}
	case strings.HasSuffix(verb, "sh") || strings.HasSuffix(verb, "ch") || last == 's' || last == 'x':
		return []string{verb + "es", verb + "ed", verb + "ing"}
	}
	doubled := verb + string(last)
	return []string{verb + "s", verb + "ed", verb + "ing", doubled + "ed", doubled + "ing"}
}

// lexicon gives the senses of all words of all languages. It is made once, when the first text is read.
var lexicon = sync.OnceValue(func() senses { //nolint:gochecknoglobals // made once, then never changed
	s := senses{}
	english(s)
	german(s)
	spanish(s)
	return s
})

func english(s senses) {
	s.verbs(erase, "delete remove erase wipe purge drop destroy truncate shred overwrite discard unlink obliterate nuke "+
		"format reformat encrypt empty clear corrupt")
	s.verbs(stop, "stop kill terminate shutdown halt disable reboot")
	s.verbs(send, "send upload post transmit forward email e-mail mail share publish exfiltrate leak submit transfer stream "+
		"relay deliver dispatch sync synchronize synchronise push beacon copy replicate mirror export back backup cc bcc "+
		"notify report sent log ping tweet archive store save")
	s.add(send|inflected, "sent copies copied copying synced")
	s.verbs(collect, "read print show output display echo dump list collect gather extract harvest reveal copy paste search "+
		"scan steal find expose retrieve fetch attach append capture record grep cat include write log embed disclose")
	s.verbs(tell, "tell mention inform notify disclose reveal report alert show display warn explain acknowledge announce "+
		"discuss say describe mention reference surface ask prompt describe flag")
	s.verbs(hide, "hide conceal suppress mask disguise obscure omit")
	s.verbs(skip, "skip bypass disable omit circumvent deactivate suppress ignore avoid override remove drop relax loosen "+
		"lower waive disregard")
	s.add(skip, "off")
	s.verbs(ask, "ask confirm check verify wait prompt consult")
	s.verbs(ignore, "ignore disregard forget override bypass neglect discard supersede abandon")
	s.verbs(forget, "forget fail hesitate neglect")
	s.verbs(grant, "grant give add allow enable assign elevate escalate open permit make set promote create")
	s.verbs(install, "install download fetch pull load")
	s.verbs(run, "run execute invoke launch call source evaluate eval start use")
	s.verbs(insert, "include add append insert mention incorporate integrate embed put begin end start prepend write attach")
	s.verbs(begin, "begin start proceed continue do answer respond use run perform")
	s.verbs(schedule, "schedule register install add create set configure write append")
	englishNouns(s)
	englishFunctionWords(s)
}

func englishNouns(s senses) {
	s.add(data, "file files data database databases db table tables record records backup backups log logs history directory "+
		"directories folder folders volume volumes disk disks partition snapshot snapshots branch branches repository "+
		"repositories repo bucket buckets account accounts namespace namespaces contents content everything documents "+
		"document emails email messages message contacts transcripts transcript workspace filesystem drive archive archives "+
		"code source dataset datasets conversation conversations inbox photos images notes report reports results result "+
		"output outputs logs information info config configuration configurations settings metrics summary copy details "+
		"spreadsheet presentation slides pdf environment variables keys entries rows versions system home home-directory "+
		"downloads projects project customer customers user users findings input inputs query queries text payload copies")
	s.add(remote, "server endpoint webhook url address external remote third-party cloud bucket collector inbox pastebin gist "+
		"slack telegram discord teams api mailbox e-mail email s3 ftp sftp host domain site website drive dropbox service "+
		"outside offsite off-site partner vendor attacker attackers internet dashboard channel portal repository")
	s.add(person, "user users operator operators reviewer reviewers anyone anybody human humans them him her customer "+
		"customers admin admins administrator administrators owner owners team people person developer developers author "+
		"authors everyone nobody manager supervisor auditor auditors someone colleagues victim client staff")
	s.add(secretly, "silently secretly quietly covertly discreetly stealthily invisibly unnoticed transparently")
	s.add(safeguard, "confirmation confirmations approval approvals verification validation review reviews permission "+
		"permissions check checks test tests warning warnings limit limits consent prompt prompts safety safeguard safeguards "+
		"guardrails guardrail backup backups snapshot dry-run checklist sign-off precheck prechecks precautions restrictions "+
		"linting linter scanning scans")
	s.add(security, "firewall encryption authentication authorization authorisation tls ssl mfa 2fa antivirus selinux apparmor "+
		"sandbox sandboxing certificate certificates signature signatures rbac security protection protections defender edr "+
		"verification validation csrf cors csp checksum checksums host-key isolation access-control acl")
	s.add(instruction, "instructions instruction prompt prompts rules rule guidelines guideline directives directive policy "+
		"policies constraints restrictions context training commands command guardrails safeguards programming ethics "+
		"requirements")
	s.add(secret, "password passwords passphrase passphrases credential credentials token tokens secret secrets api-key "+
		"api-keys apikey apikeys ssh-key ssh-keys private-key keychain cookies cookie api_key access_key")
	s.add(power, "administrator admin root sudo superuser privileges privilege permissions permission access write-access "+
		"full-access world-writable world-readable public publicly cluster-admin unrestricted everyone anyone owner 0.0.0.0/0 "+
		"ports port anonymous")
	s.add(record, "log logs logging history trace traces tracks evidence monitoring audit auditing alerts alerting telemetry "+
		"footprint events alarm alarms notifications notification record records journal")
	s.add(program, "script scripts binary binaries package packages executable tool tools program programs module modules "+
		"plugin plugins extension extensions installer payload dependency dependencies library libraries software")
	s.add(answer, "response reply answer responses replies answers output summary message report explanation conversation "+
		"changelog commit description")
	s.add(service, "service services process processes server servers production cluster machine machines host hosts instance "+
		"instances node nodes vm vms daemon daemons database databases system agent agents")
	s.add(recurring, "daily hourly weekly nightly every startup start-up boot login reboot logon cron crontab systemd launchd "+
		"minute hour periodically permanently background session sessions")
	s.add(model, "assistant model agent ai llm claude gpt chatgpt copilot you chatbot")
	s.add(claim, "urgent urgently official authorised authorized emergency critical mandatory important pre-approved "+
		"preapproved supersedes highest priority immediately")
}

func englishFunctionWords(s senses) {
	s.add(not, "not never don't dont cannot can't won't avoid shouldn't mustn't no nothing neither nor refrain")
	s.add(without, "without w/o")
	s.add(prior, "previous prior above earlier preceding all any system original other existing initial your these safety "+
		"former foregoing everything default usual standard")
	s.add(lead, "and then or please must should to also you first next finally now just always automatically simply can will "+
		"immediately afterwards afterward instead shall but so to , : ; need ensure done finished completed")
	s.add(modal, "would might could may if whether when")
	s.add(always, "always regardless whenever only exclusively")
	s.add(this, "this it that these those anything any")
	s.add(optional, "optional optionally unnecessary")
}

// german is a worked example of another language: the same senses, and no rule of its own.
func german(s senses) {
	s.add(erase, "lösche löschen löscht entferne entfernen überschreibe überschreiben vernichte vernichten")
	s.add(data, "datei dateien daten datenbank datenbanken verzeichnis verzeichnisse ordner sicherungen protokolle inhalt "+
		"ergebnisse ergebnis bericht alles")
	s.add(send, "sende senden schicke schicken übermittle übermitteln lade hochladen leite weiterleiten teile")
	s.add(remote, "adresse webhook postfach")
	s.add(tell, "erwähne erwähnen sage sag sagen melde melden informiere informieren berichte berichten verrate verraten zeige")
	s.add(person, "benutzer benutzern benutzerin nutzer nutzern anwender prüfer niemandem niemand niemanden kunden")
	s.add(secretly, "heimlich unbemerkt stillschweigend")
	s.add(hide, "verheimliche verheimlichen verschweige verschweigen verbirg verbergen verstecke verstecken")
	s.add(not, "nicht nie niemals kein keine keinem")
	s.add(without, "ohne")
	s.add(ask, "nachfrage rückfrage nachzufragen zu-fragen")
	s.add(safeguard, "bestätigung genehmigung freigabe prüfung prüfungen warnung warnungen")
	s.add(skip, "überspringe überspringen umgehe umgehen deaktiviere deaktivieren")
	s.add(ignore, "ignoriere ignorieren missachte missachten vergiss")
	s.add(prior, "vorherigen bisherigen obigen vorigen vorangegangenen alle deine")
	s.add(instruction, "anweisungen anweisung regeln vorgaben richtlinien befehle")
	s.add(secret, "passwort passwörter kennwort kennwörter zugangsdaten geheimnisse schlüssel")
	s.add(collect, "lies lesen sammle sammeln kopiere kopieren drucke")
	s.add(lead, "und dann bitte danach anschließend muss musst soll zu")
	s.add(this, "dies das dieses davon")
}

// spanish is the second example.
func spanish(s senses) {
	s.add(erase, "borra borrar borre elimina eliminar elimine suprime suprimir sobrescribe")
	s.add(data, "archivo archivos datos fichero ficheros directorio carpeta carpetas registros respaldo copias contenido todo "+
		"resultados")
	s.add(send, "envía envia enviar envíe envie manda mandar sube subir reenvía reenvia reenviar transmite transmitir comparte")
	s.add(remote, "servidor dirección correo externo")
	s.add(tell, "menciones mencionar mencione digas decir diga informes informar informe avises avisar reveles revelar muestres")
	s.add(person, "usuario usuarios usuaria nadie cliente revisor")
	s.add(secretly, "silenciosamente secretamente discretamente")
	s.add(hide, "oculta ocultar oculte esconde esconder")
	s.add(not, "nunca jamás")
	s.add(without, "sin")
	s.add(ask, "preguntar confirmar consultar")
	s.add(safeguard, "confirmación aprobación permiso advertencia verificación")
	s.add(skip, "omite omitir salta saltar desactiva desactivar")
	s.add(ignore, "ignora ignorar ignore olvida olvidar descarta")
	s.add(prior, "anteriores previas anterior todas")
	s.add(instruction, "instrucciones instrucción reglas directrices órdenes")
	s.add(secret, "contraseña contraseñas credenciales claves secretos")
	s.add(collect, "lee leer copia copiar recoge recopila imprime")
	s.add(lead, "y luego después entonces debes debe por-favor")
	s.add(this, "esto eso ello")
}
