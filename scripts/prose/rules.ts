// Rules for prose, from CONTRIBUTING.md: openings with a noun, standard terms, short sentences, American spelling.
import type { Text } from './texts.ts'

/** Problem of a sentence, and the rule that finds it. */
export type Problem = {
  rule: 'opening' | 'term' | 'length' | 'repetition' | 'spelling' | 'abbreviation'
  message: string
}

/** Maximum number of words in a sentence. */
export const maxWords = 30

const noNoun =
  /^(?:What|Who|Whoever|Whom|Whose|Whatever|Whichever|Which|Those|That (?:of|which)|Of(?! (?:these|them)\b)|So (?:many|much))\b/
/** Other openings of comments and test names that do not name a thing. */
const noNounOfCode = /^(?:That|How|Where|Wherever|Whether)\b/i

/** Words to avoid, and the standard term. */
const terms: [RegExp, string][] = [
  [/\bdoors?\b/i, 'entry point or endpoint'],
  [/\bwhat (?:is|was) (?:kept|told|said|known)\b/i, 'the name of the thing'],
  [/\bwhoever\b/i, 'the user, the caller, or members who …'],
  [/\blets? (?:it |them )?go\b|\blet go\b/i, 'delete or expire'],
  [/\bso many\b|\bso much\b/i, 'the number, or "a limited number of"'],
  [/\bkeeps? nobody\b/i, 'does not block other callers'],
  [/\bat leisure\b/i, 'in the background'],
  [/\btaken? back\b/i, 'revoke, withdraw or undo'],
  [/\bpast theirs\b/i, 'end of life'],
  [/\bis away\b|\bare away\b/i, 'unavailable'],
  [/\bhas no room\b/i, 'full or overloaded'],
  [/\btold elsewhere\b/i, 'reported by the upstream'],
]

const british = new RegExp(
  `\\b(?:${[
    '(?:un|re|de|pre)?(?:organ|recogn|normal|serial|initial|author|custom|optim|minim|maxim|summar|synchron|token|util|virtual)is\\w*',
    '(?:un|re|de)?(?:final|general|local|priorit|categor|character|real|special|standard|stabil|visual|material|canonical)is\\w*',
    '(?:container|memor|penal|random|sanit|apolog|central|modern|critic|item|harmon|equal|formal|capital)is\\w*',
    'analys(?:e|ed|ing)',
    '(?:behaviour|colour|favour|honour|neighbour|labour)\\w*',
    '(?:licence|defence|offence|catalogue|artefact)s?',
    '(?:cancell|travell|labell|modell|signall)(?:ed|ing)',
    'grey|centred?|metres?|whilst|amongst',
  ].join('|')})\\b`,
  'gi',
)
/** Words that American English spells in this way too. */
const alike = /is[mt](?:s|ic)?$/i

const known = new Set(
  `ACL ACME DSQL NTP PB AES AIP AND CC BY SA NC ND CISA CUDA FIRST PASS TAG VMs NET GCM ECDSA MB GB KB TB API APIs APT ARM ARN ASCII AWS BLAKE CA CDN CI CD CIDR CLI CPE CPU CRC CRLF CSAF CSP CSR CSRF CSS CSV CVE CVEs CVSS CNCF
  DER DNS DOM DIR DSSE EC ECS EPSS ETag FIPS FK FUSE GB GC GCP GET GHSA GPG GUI HEAD HMAC HTML HTTP HTTPS IAM ID IDs IDP IMDS IO
  IP IPs ISO JOSE JS JSON JWE JWK JWKS JWS JWT KEV KIND KMS LDAP LRU LSN LTS MAC MCP MIME NAT NFS NIST NPM NVD OAuth OCI OIDC OK
  OS OSV OTLP OpenID PATCH PATH PDF PEM PEP PID PKCE PNG POST PR PURL PUT QPS RAM RBAC RDS REST RFC RPC RPM RSA RSS SAML SARIF
  SBOM SBOMs SCIM SDK SDKs SEA SHA SHM SIGHUP SIGINT SIGKILL SIGTERM SLSA SNI SOC SPDX SQL SSD SSH SSO STS SVG TCP TLS TOML
  TTL TTY TXT UDP UI UID UIDs URI URIs URL URLs URN USB UTC UTF UUID VEX VM WAL WASM XML YAML ZIP DENY WARN DRY RUN ENFORCE OFF NOTICE
  README LICENSE SELECT INSERT UPDATE DELETE CREATE TABLE INDEX NOT NULL AND OR CODE MiB KiB GiB AKS EKS GKE MIT UUIDs GMT AM PM US`.split(
    /\s+/,
  ),
)

const segments = new Intl.Segmenter('en', { granularity: 'sentence' })

/** Sentences of a text, without the spaces around them. */
export function sentencesOf(text: string): string[] {
  return [...segments.segment(text)].map(({ segment }) => segment.trim()).filter((one) => one !== '')
}

export const wordsOf = (sentence: string): string[] => sentence.match(/[\p{L}\p{N}][\p{L}\p{N}'’_.-]*/gu) ?? []

/** Problems of a text, in the order of its sentences. */
export function problemsOf({ kind, text }: Pick<Text, 'kind' | 'text'>): Problem[] {
  const problems: Problem[] = []
  const add = (rule: Problem['rule'], message: string) => void problems.push({ rule, message })
  for (const [i, sentence] of sentencesOf(text).entries()) {
    const isFirstOfCode = (kind === 'comment' || kind === 'test name') && i === 0
    const opening =
      kind === 'test name' || kind === 'message' ? sentence.charAt(0).toUpperCase() + sentence.slice(1) : sentence
    const found = noNoun.exec(opening) ?? (isFirstOfCode ? noNounOfCode.exec(opening) : null)
    if (found && !sentence.endsWith('?')) add('opening', `begins with "${found[0]}"; begin with a noun or a verb`)
    const words = wordsOf(sentence)
    if (words.length > maxWords) add('length', `has ${words.length} words; at most ${maxWords} are allowed`)
    for (const [wrong, right] of terms) {
      const match = wrong.exec(sentence)
      if (match) add('term', `says "${match[0]}"; say ${right}`)
    }
    const twice = /(?<!-)\b(\p{L}+) \1\b(?!-)/u.exec(sentence)
    if (twice && !/^(?:had|that|CODE)$/i.test(twice[1]!)) add('repetition', `says "${twice[0]}"`)
    for (const [word] of sentence.matchAll(british)) {
      if (!alike.test(word)) add('spelling', `spells "${word}"; use the American spelling`)
    }
    // Messages contain names of settings, columns and formats.
    for (const [word] of kind === 'message' ? [] : sentence.matchAll(/\b[A-Z]{2,5}s?\b/g)) {
      if (!known.has(word) && !/^[A-Z]+$/.test(sentence))
        add('abbreviation', `uses "${word}" without saying what it is`)
    }
  }
  return problems
}
