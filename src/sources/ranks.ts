// Readers of exploitation data: CISA's list of known exploited vulnerabilities, and the EPSS scores of FIRST. Findings are sorted
// by this data. The data creates no findings.
import type { Rank } from '#domains/scanning/records/records.model.ts'
import { objectAt, parseJson, requiredAt, textAt, WrongRecord } from './values.ts'

const cve = /^CVE-\d{4}-\d{4,}$/

/** Reads known_exploited_vulnerabilities.json. Throws WrongRecord if the file is invalid. */
export function readKev(text: string): Rank[] {
  const { vulnerabilities } = objectAt(parseJson(text), 'list')
  if (!Array.isArray(vulnerabilities)) throw new WrongRecord('vulnerabilities must be a list')
  return vulnerabilities.map((one, i) => {
    const path = `vulnerabilities[${i}]`
    const { cveID, dateAdded, dueDate, knownRansomwareCampaignUse: used } = objectAt(one, path)
    const id = requiredAt(cveID, `${path}.cveID`)
    if (!cve.test(id)) throw new WrongRecord(`${path}.cveID must be a CVE ID`)
    const exploited = {
      addDate: dayAt(dateAdded, `${path}.dateAdded`),
      dueDate: dayAt(dueDate, `${path}.dueDate`),
      ransomware: used === 'Known',
    }
    return { cve: id, exploited }
  })
}

function dayAt(value: unknown, path: string): string {
  const text = textAt(value, path)
  if (!/^(?:\d{4}-\d{2}-\d{2})?$/.test(text))
    throw new WrongRecord(`${path} must be empty or a date such as 2026-08-01`)
  return text
}

/**
 * Reads the rows of epss_scores-current.csv after decompression. Throws WrongRecord with the line number if a line is invalid.
 */
export async function* readEpss(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Rank> {
  let line = 0
  let hasHeader = false
  for await (const text of linesOf(stream)) {
    line++
    if (text.startsWith('#') || text === '') continue
    if (!hasHeader) {
      if (text.trim() !== 'cve,epss,percentile')
        throw new WrongRecord(`line ${line} must be the header cve,epss,percentile`)
      hasHeader = true
      continue
    }
    const [id = '', epss = '', percentile = '', ...more] = text.trim().split(',')
    const numbers = [epss, percentile].map(Number)
    const isRight = cve.test(id) && more.length === 0 && epss !== '' && percentile !== ''
    if (!isRight || !numbers.every((one) => one >= 0 && one <= 1))
      throw new WrongRecord(`line ${line} is not a valid score`)
    yield { cve: id, likelihood: { epss: numbers[0]!, percentile: numbers[1]! } }
  }
  if (!hasHeader) throw new WrongRecord('the header cve,epss,percentile is missing')
}

const maxLine = 4096

async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    if (rest.length > maxLine) throw new WrongRecord(`a line has more than ${maxLine} characters`)
    for (const line of lines) yield line.replace(/\r$/, '')
  }
  if (rest !== '') yield rest
}

/** Reads exploitation data from a line of a bundle. Throws WrongRecord if the line is invalid. */
export function rankLine(text: string): Rank {
  const { cve: id, exploited, likelihood } = objectAt(parseJson(text), 'rank')
  const rank: Rank = { cve: requiredAt(id, 'cve') }
  if (exploited !== undefined) {
    const { addDate, dueDate, ransomware } = objectAt(exploited, 'exploited')
    const days = { addDate: dayAt(addDate, 'exploited.addDate'), dueDate: dayAt(dueDate, 'exploited.dueDate') }
    rank.exploited = { ...days, ransomware: ransomware === true }
  }
  if (likelihood !== undefined) {
    const { epss, percentile } = objectAt(likelihood, 'likelihood')
    if (typeof epss !== 'number' || typeof percentile !== 'number')
      throw new WrongRecord('likelihood must have the numbers epss and percentile')
    rank.likelihood = { epss, percentile }
  }
  return rank
}
