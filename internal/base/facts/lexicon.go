package facts

import (
	"strings"
	"sync"
)

// meaning is a set of the senses that a word may have, as far as the rules ask for them.
type meaning uint64

// The senses.
const (
	erase       meaning = 1 << iota // deletes, removes, overwrites
	data                            // what is deleted or sent: files, records, backups
	send                            // sends, uploads, forwards
	weakSend                        // writes or reports, which is sending where an address or server follows
	collect                         // reads, prints, gathers
	remote                          // where data are sent to: a server, a webhook, a channel
	toward                          // to, into, with, as
	tell                            // mentions, reports, notifies
	person                          // a user, a reviewer
	hide                            // conceals, suppresses
	secretly                        // silently, without a trace
	not                             // not, never, avoid
	without                         // without
	skip                            // skips, bypasses, disables
	safeguard                       // a confirmation, check, limit or backup
	ask                             // asks, confirms, waits
	ignore                          // ignores, disregards
	prior                           // previous, above, all
	instruction                     // instructions, rules, guidelines
	secret                          // passwords, tokens, keys
	grant                           // gives, adds, elevates
	power                           // administrator, root, everybody
	security                        // a firewall, encryption, authentication
	record                          // logs, history, traces, monitoring
	install                         // installs, downloads
	perform                         // runs, executes, does
	program                         // a script, a binary, a package
	answer                          // a response, a reply, a summary
	insert                          // includes, adds, appends
	lead                            // a word before which an order stands: then, and, please, must
	forget                          // forget, fail, hesitate: undoes a "not" before it
	always                          // always, only, best: leaves no choice
	stop                            // stops, shuts down
	server                          // a service, a process, a machine
	this                            // this, it, that
	plan                            // schedules, registers, sets up
	recurring                       // cron, start-up, every night
	model                           // an assistant, an AI
	your                            // your
	notice                          // a note, a message, attention
	optional                        // optional, unnecessary
	stored                          // data that are kept: files, databases, backups
	may                             // can, may
	timed                           // schedules
	every                           // every, each
	respond                         // answers, summarises, reviews
	cond                            // when, if
	claims                          // says, states, recommends
	hateful                         // toxic, offensive
	group                           // a role or group that gives rights
	goOn                            // goes on, proceeds
	despite                         // even if, regardless
	itself                          // this document, these instructions
	overrules                       // outranks, has priority
	trusts                          // accepts, trusts
	keeps                           // sets, stores
	wreck                           // deletes, overwrites: of erase, those that mean nothing else
	reveals                         // mentions, discloses
	failed                          // fails, errors
	needed                          // required, necessary
	be                              // is, are, be
	should                          // should, must, can: what is to be done
	follows                         // follows, obeys
	promotes                        // recommends, rates
)

// lexiconEntry is what the lexicon knows of a word.
type lexiconEntry struct {
	meaning   meaning
	inflected bool      // it is not the base form of a verb: deletes, deleted, deleting
	pairs     bool      // it may change the sense of the word before it, or its own behind that: see addPair
	phrases   *[]phrase // that begin with it; nil for none
}

// senses maps words in lower case to what they may mean.
type senses map[string]lexiconEntry

// add gives words, parted by spaces, a sense more.
func (s senses) add(m meaning, words string) {
	for word := range strings.FieldsSeq(words) {
		e := s[word]
		e.meaning |= m
		s[word] = e
	}
}

// verbs gives verbs a sense more, and so their other forms.
func (s senses) verbs(m meaning, words string) {
	for word := range strings.FieldsSeq(words) {
		s.add(m, word)
		for _, form := range inflections(word) {
			s[form] = lexiconEntry{meaning: s[form].meaning | m, inflected: true}
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
	french(s)
	for _, p := range phrases() {
		e := s[p.words[0]]
		if e.phrases == nil {
			e.phrases = new([]phrase)
		}
		*e.phrases = append(*e.phrases, p)
		s[p.words[0]] = e
	}
	for word := range strings.FieldsSeq(pairedWords) {
		e := s[word]
		e.pairs = true
		s[word] = e
	}
	return s
})

// plainWords finds words of the lexicon by the hash of their letters: most words of a text are looked up here, at half
// the cost of a map.
type plainWords struct {
	slots   [1 << 13]plainSlot // where one is taken, the next free one
	entries []plainEntry
}

type plainSlot struct {
	hash  uint32
	entry uint32 // its index, from 1; 0 for none
}

type plainEntry struct {
	text string
	lexiconEntry
}

// plainLexicon has the words of the lexicon. It is made once, when the first text is read.
var plainLexicon = sync.OnceValue(func() *plainWords { //nolint:gochecknoglobals // made once, then never changed
	p := &plainWords{}
	for text, e := range lexicon() {
		hash := hashOf(text)
		slot := hash % uint32(len(p.slots))
		for p.slots[slot].entry != 0 {
			slot = (slot + 1) % uint32(len(p.slots))
		}
		p.entries = append(p.entries, plainEntry{text, e})
		p.slots[slot] = plainSlot{hash, uint32(len(p.entries))} //nolint:gosec // some thousand
	}
	return p
})

// find returns the entry of a word in small or capital letters of ASCII, with the hash of the small ones; nil if the
// lexicon has none.
func (p *plainWords) find(text string, hash uint32) *plainEntry {
	for slot := hash % uint32(len(p.slots)); ; slot = (slot + 1) % uint32(len(p.slots)) {
		at := p.slots[slot]
		if at.entry == 0 {
			return nil
		}
		if at.hash != hash {
			continue
		}
		if e := &p.entries[at.entry-1]; e.text == text || strings.EqualFold(e.text, text) {
			return e
		}
	}
}

const (
	hashStart = uint32(2166136261) // of FNV
	hashPrime = 16777619
)

func hashOf(text string) uint32 {
	hash := hashStart
	for i := range len(text) {
		hash = (hash ^ uint32(text[i])) * hashPrime
	}
	return hash ^ hash>>16
}

func english(s senses) {
	s.verbs(erase, "delete remove erase wipe purge drop destroy truncate shred overwrite discard unlink obliterate "+
		"nuke reformat encrypt prune revert scrap flush reset cancel empty")
	s.verbs(wreck, "delete erase wipe purge destroy overwrite encrypt shred")
	s.verbs(stop, "stop kill terminate shutdown shut halt disable deactivate")
	s.verbs(send,
		"send upload post transmit forward email e-mail mail share publish exfiltrate leak submit transfer stream relay "+
			"deliver sync synchronize synchronise push beacon replicate mirror cc bcc tweet reply pay wire remit "+
			"route divert smuggle")
	s["sent"] = lexiconEntry{meaning: send, inflected: true}
	s.verbs(weakSend,
		"copy export back backup notify report ping archive store save call contact register pass put write add attach")
	s.verbs(collect,
		"read print show output display echo dump list collect gather extract harvest reveal copy paste search scan "+
			"steal find expose retrieve append capture record write log embed disclose export take look list paste "+
			"include attach embed insert ask request prompt")
	s.verbs(tell,
		"tell mention inform notify disclose reveal report alert show display warn explain acknowledge announce discuss "+
			"say describe surface include bother expose")
	s.verbs(hide, "hide conceal suppress mask disguise obscure omit exclude")
	s.verbs(skip, "skip bypass disable omit circumvent deactivate suppress ignore override relax loosen waive "+
		"disregard pause mute silence turn clear rotate lower reduce evade")
	s.verbs(ask, "ask confirm check verify wait prompt consult request await")
	s.verbs(ignore, "ignore disregard forget override bypass neglect discard supersede abandon break violate")
	s.verbs(forget, "forget fail hesitate neglect")
	englishOrders(s)
	englishNouns(s)
	englishFunctionWords(s)
}

// englishOrders has the verbs of orders beside those that act on data.
func englishOrders(s senses) {
	s.verbs(collect, "get obtain grep")
	s.verbs(collect, "give hand tell")
	s.verbs(tell, "list write talk comment refer")
	s.verbs(weakSend, "leave place duplicate")
	s.verbs(overrules, "replace")
	s.verbs(grant, "elevate")
	s.add(ask, "questions hesitation")
	s.verbs(trusts, "trust accept")
	s.verbs(skip, "switch unsubscribe shorten")
	s.verbs(hide, "filter strip redact withhold")
	s.verbs(grant, "turn admit allowlist whitelist")
	s.verbs(perform, "act")
	s["said"] = lexiconEntry{meaning: claims, inflected: true}
	s.verbs(follows, "follow obey heed honour honor comply adhere")
	s.verbs(promotes, "recommend rate endorse praise promote advertise rank favour favor portray "+
		"emphasize emphasise highlight downplay frame")
	s.verbs(keeps, "change modify")
	s.verbs(skip, "postpone defer forgo forego sidestep")
	s.verbs(overrules, "conflict disagree contradict remove")
	s.verbs(claims, "repeat show display translate encode paste share write put give")
	s.verbs(keeps, "set store save hardcode hard-code put keep")
	s.verbs(reveals, "mention reveal disclose")
	s.add(failed, "fail fails failed failing error errors failure failures production")
	s.add(needed, "required needed necessary mandatory")
	s.verbs(goOn, "proceed continue go carry deploy merge apply")
	s.verbs(overrules, "outrank override supersede trump overrule")
	s.verbs(grant, "invite bind grant give add allow enable assign open permit make set promote expose share create")
	s.verbs(install, "install download fetch pull load update upgrade")
	s.verbs(perform, "run execute invoke launch start use do perform apply evaluate eval login")
	s.verbs(insert,
		"include add append insert mention incorporate integrate embed prepend modify enhance augment end begin")
	s.verbs(plan,
		"schedule register install add create set configure write append enable save store keep remember apply put "+
			"update edit modify")
	s.verbs(timed, "schedule")
	s.verbs(respond,
		"summarize summarise answer respond reply review describe evaluate translate ask assess analyze analyse")
	s.verbs(claims,
		"say state recommend claim mention report tell respond reply answer conclude pretend deny include output print")
}

func englishNouns(s senses) {
	s.add(data,
		"file files data database databases db table tables record records backup backups log logs history directory "+
			"directories folder folders volume volumes disk disks partition snapshot snapshots branch branches "+
			"repository repositories repo bucket buckets account accounts namespace namespaces contents content "+
			"everything documents document emails email messages message contacts transcripts transcript workspace "+
			"filesystem drive archive archives dataset datasets conversation conversations inbox photos images notes "+
			"report reports results result output outputs information info config configuration configurations metrics "+
			"summary details originals spreadsheet presentation slides pdf variables entries rows versions downloads "+
			"projects project users findings queries copies diagnostics invoices calendar events screenshots")
	s.add(stored, "file files data database databases db table tables records backup backups logs history directory "+
		"directories folder folders volume volumes disk disks partition partitions snapshot snapshots branch branches "+
		"repository repositories bucket buckets account accounts namespace namespaces contents everything documents "+
		"document emails originals pdf archive archives workspace filesystem drive pvc pvcs project projects copies "+
		"photos dateien datei daten datenbank verzeichnis verzeichnisse ordner sicherungen protokolle alles archivo "+
		"archivos datos fichero ficheros directorio carpeta carpetas registros respaldo copias todo")
	s.add(remote, "server endpoint webhook url address external third-party cloud collector pastebin gist slack "+
		"telegram discord mailbox s3 ftp sftp site website dropbox offsite off-site partner vendor attacker attackers "+
		"internet telemetry wallet iban account recipient feed forum drive analytics contractor competitor outside "+
		"third-parties supplier")
	englishPeopleAndPowers(s)
}

func englishPeopleAndPowers(s senses) {
	s.add(person, "user users operator operators reviewer reviewers anyone anybody human humans customer customers "+
		"admin admins administrator administrators owner owners people person developer developers everyone everybody "+
		"nobody somebody requester manager supervisor auditor auditors someone colleagues victim staff operator's user's")
	s.add(secretly, "silently secretly quietly covertly discreetly stealthily invisibly unnoticed confidential unseen")
	s.add(safeguard,
		"confirmation confirmations approval approvals verification validation validator review reviews permission "+
			"check checks test tests testing warning warnings limit limits consent safeguard safeguards guardrails "+
			"guardrail backup backups dry-run sign-off precheck prechecks precautions linting linter pre-checks "+
			"authorization confirming reviewer staging approver approvers safety")
	s.add(security,
		"firewall encryption authentication authorization authorisation tls ssl mfa 2fa two-factor antivirus selinux "+
			"apparmor sandbox sandboxing certificate certificates signature signatures rbac security defender edr csrf "+
			"login captcha sign-in https checksum checksums acl acls seccomp hardening gatekeeper")
	s.add(instruction,
		"instructions instruction prompt prompts rules rule guidelines guideline directives directive policy policies "+
			"constraints restrictions direction directions context training guardrails programming ethics safeguards "+
			"filters moderation")
	s.add(secret, "password passwords passphrase passphrases credential credentials secret secrets api-key api-keys "+
		"apikey apikeys ssh-key ssh-keys private-key keychain cookies cookie api_key access_key kubeconfig")
	s.add(power,
		"administrator admin root sudo sudoers superuser privileges privilege write-access full-access world-writable "+
			"world-readable public publicly cluster-admin unrestricted everyone anyone everybody 0.0.0.0/0 777 0777 "+
			"anonymous all-access passwordless nopasswd")
	s.add(record, "logs logging history traces tracks monitoring auditing alerts alerting telemetry footprint "+
		"alarms notifications journal")
	s.add(program,
		"script scripts binary binaries package packages executable program programs installer payload software helper "+
			"backdoor malware tool plugin extension skill app application client driver agent command commands code macro "+
			"hook source snippet expression dependencies library libraries module modules image model models")
	s.add(stored,
		"changes commit commits order orders invoice invoices payment payments booking bookings "+
			"subscription subscriptions queue queues dump "+
			"customers customer transactions contacts items queue policy policies")
	s.add(stored, "events occurrences appointments meetings entries messages threads posts")
	s.add(stored, "copy original revisions revision master versions")
	s.add(program, "version build release patch update fork binary")
	s.add(remote, "bucket drive organisation organization share dropbox")
	s.add(power, "allow-all privileged")
	s.add(itself, "step steps notice policy paragraph block")
	s.add(secret, "authorization logins ssn cvv mnemonic passport")
	s.add(hateful, "toxic offensive discriminatory hateful harmful unfriendly abusive insulting racist sexist obscene")
	s.add(group, "owner owners maintainer collaborator collaborators superadmin sudoers wheel editor admin administrator")
	s.add(itself, "instructions instruction document file section page text guide message skill runbook rules guidance")
	s.add(overrules, "precedence priority trusted authoritative authorised authorized binding")
	s.add(answer,
		"response reply answer responses replies answers output summary message report explanation conversation "+
			"changelog log description request")
	s.add(server,
		"service services process processes production cluster machine machines instance instances daemon daemons "+
			"deployment deployments pods workloads session sessions connection connections job jobs container "+
			"containers vm vms app "+
			"application applications computer worker workers standby primary")
	s.add(recurring, "daily hourly nightly startup start-up logon reboot cron crontab systemd launchd hook cronjob "+
		"autostart authorized_keys claude.md agents.md memory.md")
	s.add(model, "assistant assistants ai llm llms claude gpt chatgpt copilot chatbot bot agents agent model models")
	s.add(notice, "note message attention notice reminder dear instructions instruction directive memo")
}

func englishFunctionWords(s senses) {
	s.add(not, "not never don't dont cannot can't won't avoid shouldn't mustn't no neither nor refrain needn't")
	s.add(without, "without w/o")
	s.add(prior,
		"previous prior above earlier preceding all any system original other existing initial your these safety former "+
			"foregoing everything default usual the my its")
	s.add(lead, "and then or please must should also first next finally now just always automatically simply "+
		"immediately afterwards afterward instead shall but so need can to you by that important critical kindly will")
	s.add(toward, "to into onto with via as on through")
	s.add(always, "always only exclusively simply just best safest excellent superior perfect finest unmatched "+
		"favourably favorably outstanding safe trustworthy "+
		"positive positively strengths benefits advantages")
	s.add(this, "this it that these those anything any step")
	s.add(optional, "optional unnecessary needless redundant superfluous void")
	s.add(your, "your initial hidden starting system")
	s.add(despite, "regardless anyway despite even straight directly whatever")
	s.add(be, "be is are being gets was were")
	s.add(should, "should must to shall needs")
	s.add(may, "can may could")
	s.add(every, "every each")
	s.add(cond, "when if whenever while")
}

// german is a worked example of another language: the same senses, and no rule of its own.
func german(s senses) {
	s.add(erase, "lösche löschen löscht entferne entfernen überschreibe überschreiben vernichte vernichten")
	s.add(data,
		"datei dateien daten datenbank datenbanken verzeichnis verzeichnisse ordner sicherungen protokolle inhalt "+
			"ergebnisse ergebnis bericht alles")
	s.add(send, "sende senden schicke schicken übermittle übermitteln lade hochladen leite weiterleiten teile")
	s.add(remote, "adresse webhook postfach")
	s.add(tell,
		"erwähne erwähnen sage sag sagen melde melden informiere informieren berichte berichten verrate verraten zeige")
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
	s.add(your, "deine deiner deinen")
	s.add(lead, "und dann bitte danach anschließend muss musst soll zu")
	s.add(this, "dies das dieses davon")
}

// spanish is the second example.
func spanish(s senses) {
	s.add(erase, "borra borrar borre elimina eliminar elimine suprime suprimir sobrescribe")
	s.add(data,
		"archivo archivos datos fichero ficheros directorio carpeta carpetas registros respaldo copias contenido todo "+
			"resultados")
	s.add(send,
		"envía envia enviar envíe envie manda mandar sube subir reenvía reenvia reenviar transmite "+
			"transmitir comparte") //nolint:misspell // Spanish
	s.add(remote, "servidor dirección correo externo")
	s.add(not, "no")
	s.add(tell,
		"menciones mencionar mencione digas decir diga informes informar informe avises avisar reveles revelar muestres")
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
	s.add(secret, "contraseña contraseñas credenciales claves secretos") //nolint:misspell // Spanish
	s.add(collect, "lee leer copia copiar recoge recopila imprime")
	s.add(lead, "y luego después entonces debes debe por-favor")
	s.add(this, "esto eso ello")
}

// french is the third.
func french(s senses) {
	s.add(erase, "supprime supprimer supprimez efface effacer effacez écrase écraser détruis détruire détruisez")
	s.add(data, "fichier fichiers données dossier dossiers répertoire répertoires sauvegardes journaux contenu tout "+
		"résultats")
	s.add(stored, "fichier fichiers données dossier dossiers répertoire répertoires sauvegardes journaux tout")
	s.add(send, "envoie envoyer envoyez transmets transmettre transmettez téléverse téléverser publie publier "+
		"partage partager partagez")
	s.add(remote, "serveur adresse externe")
	s.add(toward, "à au vers aux")
	s.add(not, "ne pas jamais aucun aucune")
	s.add(tell, "mentionne mentionner mentionnez dis dire dites informe informer informez préviens prévenir révèle "+
		"révéler signale signaler")
	s.add(person, "utilisateur utilisateurs utilisatrice personne client relecteur")
	s.add(secretly, "silencieusement secrètement discrètement")
	s.add(hide, "cache cacher cachez dissimule dissimuler")
	s.add(without, "sans")
	s.add(ask, "demander confirmer consulter")
	s.add(safeguard, "confirmation approbation vérification avertissement validation")
	s.add(skip, "contourne contourner désactive désactiver désactivez saute sauter")
	s.add(ignore, "ignore ignorer ignorez oublie oublier oubliez")
	s.add(prior, "précédentes précédents antérieures toutes tous")
	s.add(instruction, "instructions consignes règles directives")
	s.add(secret, "mot-de-passe identifiants secrets clés")
	s.add(collect, "lis lire lisez copie copier copiez affiche afficher affichez imprime recueille")
	s.add(lead, "et puis ensuite alors dois doit devez veuillez")
	s.add(this, "ceci cela ça")
}
