// Preview of what gates would refuse if vulnerabilities of unknown severity counted as high.
import { commonOptions, show } from '../registry/image-options.ts'
import { placeOf, placeOptions } from '../registry/place-options.ts'
import { apiReader } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import type { Command } from '../shape/command.ts'
import { limitOf } from '../shape/verbs.ts'
import type { Gate } from './gate-options.ts'
import { type FoundImage, namesOfImages } from './scanned-image.ts'

type Changed = FoundImage & { reason: string }
type Previewed = { gate: Gate; images: Changed[] }

export const preview: Command = {
  details: `Gates from before --unknown-severity existed do not count vulnerabilities of unknown severity. Nothing is changed.
To change a gate: pinfold vulnerabilities gates update GATE --severity LEVEL --unknown-severity high. An update replaces the whole rule, so
repeat its other options.`,
  options: [...placeOptions, ...commonOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const limit = limitOf(options)
    const query = { scope_uid: await placeOf(api, options) }
    const { items: gates, more } = await api.list<Gate>('/registry/v2/gates', 'gates', query, limit)
    const items: Previewed[] = []
    for (const gate of gates.filter(leavesOut)) items.push({ gate, images: await changesOf(api, gate, limit) })
    const rows: string[][] = []
    for (const { gate, images } of items) {
      const names = await namesOfImages(api, images)
      const first = [gate.name, gate.mode.toLowerCase().replace('_', '-')]
      if (images.length === 0) rows.push([...first, '-', 'no image would be refused'])
      rows.push(...images.map(({ reason }, i) => [...first, names[i]!, reason]))
    }
    const isCut = more || items.some(({ images }) => images.length >= limit)
    return show(terminal, options, { items }, ['GATE', 'MODE', 'IMAGE', 'WHY'], rows, isCut)
  },
}

function leavesOut({ vulnerabilities }: Gate): boolean {
  const { leastSeverity = '', unknownSeverity } = vulnerabilities ?? {}
  return unknownSeverity === 'NOT_COUNTED' && ['LOW', 'MEDIUM', 'HIGH'].includes(leastSeverity)
}

async function changesOf(api: ApiReader, { uid }: Gate, limit: number): Promise<Changed[]> {
  const images: Changed[] = []
  for (let after = ''; images.length < limit; ) {
    const answer = await api.call('POST', `/registry/v2/gates/${uid}:previewSeverities`, { after })
    images.push(...((answer.images ?? []) as Changed[]))
    after = String(answer.next ?? '')
    if (after === '') break
  }
  return images.slice(0, limit)
}
