// What ranks vulnerabilities and never finds any: CISA's list of those known to be exploited, and the EPSS of FIRST.
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { objectAt, parseJson, requiredAt, textAt, WrongRecord } from './values.ts'

const cve = /^CVE-\d{4}-\d{4,}$/

/** Days are `YYYY-MM-DD`. */
export type Exploited = { cve: string; addDate: string; dueDate: string; ransomware: boolean }

/** Reads known_exploited_vulnerabilities.json; throws WrongRecord. */
export function readKev(text: string): Exploited[] {
  const { vulnerabilities } = objectAt(parseJson(text), 'list')
  if (!Array.isArray(vulnerabilities)) throw new WrongRecord('vulnerabilities must be a list')
  return vulnerabilities.map((one, i) => {
    const path = `vulnerabilities[${i}]`
    const { cveID, dateAdded, dueDate, knownRansomwareCampaignUse: used } = objectAt(one, path)
    const id = requiredAt(cveID, `${path}.cveID`)
    if (!cve.test(id)) throw new WrongRecord(`${path}.cveID must be the id of a CVE`)
    return {
      cve: id,
      addDate: dayAt(dateAdded, `${path}.dateAdded`),
      dueDate: dayAt(dueDate, `${path}.dueDate`),
      ransomware: used === 'Known',
    }
  })
}

function dayAt(value: unknown, path: string): string {
  const text = textAt(value, path)
  if (!/^(?:\d{4}-\d{2}-\d{2})?$/.test(text)) throw new WrongRecord(`${path} must be a day`)
  return text
}

/** Both from 0 to 1: how likely it is to be exploited within a month, and how many are less likely. */
export type Likelihood = { cve: string; epss: number; percentile: number }

/** The rows of epss_scores-current.csv, unpacked; a line that is wrong throws WrongRecord with its number. */
export async function* readEpss(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Likelihood> {
  let line = 0
  let hasHeader = false
  for await (const text of createInterface({ input: Readable.from(stream) })) {
    line++
    if (text.startsWith('#') || text === '') continue
    if (!hasHeader) {
      if (text.trim() !== 'cve,epss,percentile') throw new WrongRecord(`line ${line} must name the columns`)
      hasHeader = true
      continue
    }
    const [id = '', epss = '', percentile = '', ...more] = text.trim().split(',')
    const numbers = [epss, percentile].map(Number)
    const isRight = cve.test(id) && more.length === 0 && epss !== '' && percentile !== ''
    if (!isRight || !numbers.every((one) => one >= 0 && one <= 1)) throw new WrongRecord(`line ${line} is no score`)
    yield { cve: id, epss: numbers[0]!, percentile: numbers[1]! }
  }
  if (!hasHeader) throw new WrongRecord('the columns are missing')
}
