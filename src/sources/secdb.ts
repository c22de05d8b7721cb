// Reader of the security databases of Alpine and its derivatives. They list the versions with fixes for each package of a branch.
import type { AffectedPackage, SourceRecord } from '#domains/scanning/records/records.model.ts'
import { type Json, listAt, objectAt, parseJson, requiredAt, textsAt, WrongRecord } from './values.ts'

/** Reads the database of one branch. Throws WrongRecord if the database is invalid. */
export function readSecdb(text: string, ecosystem: string): SourceRecord[] {
  const records = new Map<string, SourceRecord>()
  const database = objectAt(parseJson(text), 'database')
  if (!Array.isArray(database.packages)) throw new WrongRecord('packages must be a list')
  for (const [i, one] of database.packages.entries()) {
    const path = `packages[${i}].pkg`
    const found = objectAt(objectAt(one, `packages[${i}]`).pkg, path)
    addPackage(records, found, path, ecosystem)
  }
  return [...records.values()]
}

function addPackage(records: Map<string, SourceRecord>, found: Json, path: string, ecosystem: string): void {
  const name = requiredAt(found.name, `${path}.name`)
  for (const [version, ids] of Object.entries(objectAt(found.secfixes ?? {}, `${path}.secfixes`))) {
    const affected = affectedOf(ecosystem, name, version)
    for (const entry of textsAt(listAt(ids, `${path}.secfixes`), `${path}.secfixes`)) {
      for (const { id, aliases } of idsOf(entry)) {
        const record = records.get(id) ?? recordOf(id)
        record.affected.push(affected)
        record.aliases = [...new Set([...record.aliases, ...aliases])]
        records.set(id, record)
      }
    }
  }
}

/** An entry for version 0 means that the package was never vulnerable, because no version is before 0. */
function affectedOf(ecosystem: string, name: string, version: string): AffectedPackage {
  const never = /^0(?:-r0)?$/.test(version)
  const events = never ? [{ introduced: '0' }] : [{ introduced: '0' }, { fixed: version }]
  return {
    ecosystem,
    name,
    ranges: [{ type: 'ECOSYSTEM', events }],
    versions: [],
    state: never ? 'not_affected' : 'affected',
    severity: '',
    qualifiers: {},
  }
}

/** IDs of an entry. The entry has one vulnerability with or without aliases, or several vulnerabilities. */
function idsOf(entry: string): { id: string; aliases: string[] }[] {
  const tokens = entry.split(/\s+/).filter((token) => /^[A-Za-z]+-[\w:.-]+$/.test(token) && token.length <= 128)
  const cves = tokens.filter((token) => token.startsWith('CVE-'))
  const others = tokens.filter((token) => !token.startsWith('CVE-'))
  if (cves.length === 1) return [{ id: cves[0]!, aliases: others }]
  return [...new Set([...cves, ...others])].map((id) => ({ id, aliases: [] }))
}

function recordOf(id: string): SourceRecord {
  const times = { publishTime: '', modifyTime: '', withdrawTime: '' }
  return { id, aliases: [], upstream: [], summary: '', ...times, severities: [], references: [], affected: [] }
}
