// Export of the audit log as CSV and as JSON lines.
import { invalid } from '#lib/errors.ts'
import { parentOf } from '#lib/uid.ts'
import { type DescribedEntry, titleOf } from './audit-sentences.model.ts'

/** Most entries in one response. */
export const maxExported = 1000

const formats = ['csv', 'jsonl'] as const
export type ExportFormat = (typeof formats)[number]

export function exportFormat(format: string): ExportFormat {
  const known = formats.find((one) => one === format)
  if (known === undefined) throw invalid({ field: 'format', description: `must be one of: ${formats.join(', ')}` })
  return known
}

const columns: Readonly<Record<string, (entry: DescribedEntry) => string>> = {
  time: ({ createTime }) => createTime,
  actor: ({ sentence }) => sentence[0]!.text,
  action: ({ type }) => titleOf(type),
  sentence: ({ sentence }) => sentence.map(({ text }) => text).join(''),
  address: ({ remoteAddress }) => remoteAddress,
  user_agent: ({ userAgent }) => userAgent,
  type: ({ type }) => type,
  group_uid: ({ uid }) => parentOf(uid),
  resource_uid: ({ subject }) => subject,
  actor_uid: ({ actor }) => actor,
  request_id: ({ requestId }) => requestId,
  entry_uid: ({ uid }) => uid,
}

export const csvHeader = `${Object.keys(columns).join(',')}\r\n`

/** Line of an entry, with a line break. */
export function csvLine(entry: DescribedEntry): string {
  return `${Object.values(columns)
    .map((cell) => escapeCell(cell(entry)))
    .join(',')}\r\n`
}

/**
 * Quotes a cell. Spreadsheets run a cell as a formula if it begins with one of these characters. Some spreadsheets also start a
 * new cell after a semicolon or a tab.
 */
export function escapeCell(text: string): string {
  const safe = text.replace(/^[=+\-@\t\r\n]/, "'$&").replace(/([;\t]["\s]{0,4})([=+\-@])/g, "$1'$2")
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Entry as a JSON object in one line, with a line break. */
export function jsonLine(entry: DescribedEntry): string {
  const { uid, type, subject, actor, act, remoteAddress, userAgent, requestId, bodyType, body, former } = entry
  const sentence = entry.sentence.map(({ text }) => text).join('')
  const shown = {
    ...{
      createTime: entry.createTime,
      sentence,
      action: titleOf(type),
      type,
      uid,
      group: parentOf(uid),
      subject,
      actor,
    },
    ...{ act: parsed(act), remoteAddress, userAgent, requestId, bodyType, body: parsed(body), former: parsed(former) },
  }
  return `${JSON.stringify(shown)}\n`
}

function parsed(json: string): unknown {
  return json === '' ? null : JSON.parse(json)
}
