/** Maximum length of a subject in characters. */
const maxLength = 72
/** Form of a subject: one or more components, a colon, and what the commit does. */
const form = /^(?:[a-z0-9][a-z0-9./-]*)(?:, [a-z0-9][a-z0-9./-]*)*: (\S+)/
/** Imperatives that look like another form of a verb, such as `embed`. */
const imperatives = new Set(
  'address bring discuss embed exceed express feed focus guess miss need pass process proceed seed string succeed'.split(
    ' ',
  ),
)

/** Problems of a subject. Empty if the subject follows CONTRIBUTING.md. */
export function problemsOf(subject: string): string[] {
  const problems: string[] = []
  const length = [...subject].length
  if (length > maxLength) problems.push(`has ${length} characters; at most ${maxLength} are allowed`)
  const verb = form.exec(subject)?.[1]
  if (verb === undefined)
    problems.push('must begin with the component and a colon, such as "registry: cache resolved tags"')
  else if (!isImperative(verb)) problems.push(`must say what the commit does in the imperative ("add", not "${verb}")`)
  if (/[.…]$/.test(subject)) problems.push('must not end with a period')
  return problems
}

function isImperative(word: string): boolean {
  const lower = word.toLowerCase()
  if (word !== lower) return false
  return imperatives.has(lower) || !/(?:ed|ing|[^s]s|ss)$/.test(lower) || /(?:ess|iss|oss|uss)$/.test(lower)
}
