// Rules of the dependency audit, without network access. The types describe package-lock.json (version 3) and the output of `npm
// audit --json` (version 2).

export type Lock = { packages: Record<string, LockedPackage> }
type LockedPackage = { version?: string; license?: string; integrity?: string; dev?: boolean; link?: boolean }

export type Report = { auditReportVersion: 2; vulnerabilities: Record<string, { via: (string | Via)[] }> }
/** An advisory. If a package is affected only through another package, `via` has the name of the other one. */
type Via = { source: number; name: string; title: string; url: string; severity: string; range: string }

export type Rules = {
  /** SPDX identifiers of licenses that runtime dependencies may have. */
  licenses: readonly string[]
  /** Advisories that are accepted, each with the reason and the last day of the acceptance. */
  accepted: readonly { id: string; reason: string; until: string }[]
}

const grave = new Set(['high', 'critical'])

/** Compares advisories with the rules. `today` is a date such as 2026-08-01. A problem fails the audit; a note does not. */
export function auditAdvisories(report: Report, rules: Rules, today: string): { problems: string[]; notes: string[] } {
  const [problems, notes]: [string[], string[]] = [[], []]
  const advisories = new Map<string, Via>()
  for (const { via } of Object.values(report.vulnerabilities)) {
    for (const one of via) if (typeof one !== 'string') advisories.set(idOf(one), one)
  }
  for (const [id, { name, range, severity, title }] of [...advisories].sort()) {
    const accepted = rules.accepted.find((one) => one.id === id)
    const about = `${id}: ${severity}: ${name} ${range}: ${title}`
    if (!grave.has(severity)) notes.push(about)
    else if (!accepted) problems.push(about)
    else if (accepted.until < today) problems.push(`${about} (accepted until ${accepted.until}: ${accepted.reason})`)
    else notes.push(`${about} (accepted: ${accepted.reason})`)
  }
  for (const { id } of rules.accepted)
    if (!advisories.has(id)) notes.push(`${id} is accepted, but nothing has it any more`)
  return { problems, notes }
}

/** Last part of an advisory's URL, such as GHSA-xxxx-xxxx-xxxx. */
function idOf({ source, url }: Via): string {
  return /[^/]+$/.exec(url)?.[0] ?? String(source)
}

/** Problems in package-lock.json: packages without a checksum, and licenses that are not accepted. */
export function auditLock({ packages }: Lock, { licenses }: Rules): string[] {
  return Object.entries(packages).flatMap(([path, { version, license, integrity, dev, link }]) => {
    if (path === '' || link) return []
    const name = `${path.replace(/^.*node_modules\//, '')} ${version}`
    const unchecked = integrity?.startsWith('sha512-') ? [] : [`${name} has no sha512 integrity in package-lock.json`]
    if (dev || isAllowed(license ?? '', licenses)) return unchecked
    return [...unchecked, `${name} has the licence ${license ?? 'unknown'}, which scripts/audit.json does not list`]
  })
}

/** True if the accepted licenses can satisfy an SPDX expression. */
export function isAllowed(expression: string, licenses: readonly string[]): boolean {
  const words = expression.match(/[()]|[^\s()]+/g) ?? []
  let at = 0
  const one = (): boolean => {
    if (words[at] !== '(') return licenses.includes(words[at++] ?? '')
    at++
    const inner = either()
    return words[at++] === ')' && inner
  }
  const joined = (word: string, part: () => boolean, join: (a: boolean, b: boolean) => boolean): boolean => {
    let met = part()
    while (words[at] === word) {
      at++
      met = join(part(), met)
    }
    return met
  }
  const both = () => joined('AND', one, (a, b) => a && b)
  const either = (): boolean => joined('OR', both, (a, b) => a || b)
  return either() && at === words.length
}

/** Problems in the file of rules itself. */
export function checkRules({ licenses, accepted }: Rules): string[] {
  const wrong = accepted.filter(({ id, reason, until }) => !id || !reason || !/^\d{4}-\d{2}-\d{2}$/.test(until ?? ''))
  const problems = wrong.map(
    ({ id }) => `scripts/audit.json: ${id || 'an entry'} needs an id, a reason and a day, until`,
  )
  return licenses.length > 0 ? problems : [...problems, 'scripts/audit.json lists no licences']
}
