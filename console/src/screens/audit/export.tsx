// Export of the audit log. The server sends it in parts, and the browser joins them to a file.
import { useState } from 'preact/hooks'
import { ask } from '../../data/api.ts'
import { MenuButton, MenuItem } from '../../ui/menu.tsx'
import { saveFile } from '../../ui/save.tsx'
import { Note, Problem } from '../../ui/states.tsx'
import { showToast } from '../../ui/toast.tsx'
import { auditWords } from '../../words/audit.ts'
import type { AskedAudit } from './query.ts'

type Format = keyof typeof auditWords.exportFile
type Part = { content: string; count: number; nextPageToken: string }
/** Most parts of a file, each with 1,000 entries. */
const mostParts = 50

export function ExportMenu({ group, query, file }: { group: string; query: AskedAudit; file: string }) {
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const [cut, setCut] = useState(0)
  const download = async (format: Format) => {
    setBusy(true)
    setError(undefined)
    setCut(0)
    try {
      const { parts, count, isCut } = await readParts(group, format, query)
      saveFile(`${file}-audit.${format}`, parts.join(''))
      if (isCut) setCut(count)
      showToast(auditWords.exported(count))
    } catch (cause) {
      setError(cause)
    }
    setBusy(false)
  }
  return (
    <>
      {cut > 0 && <Note kind="warn">{auditWords.exportCut(cut)}</Note>}
      {error !== undefined && <Problem error={error} />}
      {isBusy ? (
        <p role="status">{auditWords.exporting}</p>
      ) : (
        <MenuButton label={auditWords.exportList}>
          {(Object.keys(auditWords.exportFile) as Format[]).map((format) => (
            <MenuItem key={format} onClick={() => void download(format)}>
              {auditWords.exportFile[format]}
            </MenuItem>
          ))}
        </MenuButton>
      )}
    </>
  )
}

async function readParts(group: string, format: Format, { actor, type, subject, since }: AskedAudit) {
  const parts: string[] = []
  let [count, pageToken] = [0, '']
  do {
    const query = { format, actor, type, subject, since, pageToken }
    const part = await ask<Part>('GET', `/control/v1/auditExport/${group}`, { query })
    parts.push(part.content)
    count += part.count
    pageToken = part.nextPageToken
  } while (pageToken !== '' && parts.length < mostParts)
  return { parts, count, isCut: pageToken !== '' }
}
