import type { ImportTagHistoryResponseJson } from '#gen/pinfold/control/registry/v1/tag_history_pb.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import { ApiError } from '../framework/api-client.ts'
import { exitCodes, failure } from '../framework/cli-error.ts'
import { type Command, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { type OperatorApi, operatorDetails, operatorOptions, withOperator } from '../framework/operator.ts'
import { progressOf } from '../framework/progress.ts'
import { parseUserJson } from '../framework/user-files.ts'
import { groupFor } from './import-advisories.ts'
import { inputFiles, isJson } from './import-files.ts'

type History = { tag: string; deprecated: boolean; records: { time: string; digest: string }[] }
type Counts = Required<ImportTagHistoryResponseJson>
type Summary = Counts & { images: number; imagesCreated: number; refused: { image: string; problem: string }[] }

/**
 * Records of one request. A request is one transaction that delays other writers, and the server accepts at most 10,000 records.
 */
const tagsPerRequest = 100
const recordsPerRequest = 5000

export const importTagHistory: Command = {
  details: `The file is JSON, compressed with gzip or not: {"tags": [{"image", "tag", "listedAtEnd", "history": [{"updateTimestamp",
"digest"}]}]}, oldest first. Each image becomes a repository of the group, named by the last part of the image name.
The contents of the images are not imported, so the tags are listed but cannot be pulled. A second import changes nothing.

${operatorDetails}`,
  arguments: [{ name: '<file>', summary: 'File with tag histories, or a folder or tar archive of such files' }],
  options: [
    ...operatorOptions,
    {
      flags: '--in <group>',
      summary: 'Group of the images: ORG, ORG/FOLDER or a uid; default: the public organization',
      former: ['--group <group>'],
    },
    outputOption,
  ],
  async run(terminal, options) {
    const images = await readHistories(String(options.file))
    const summary = await withOperator(terminal, options, (api) => importAll(terminal, options, api, images))
    const { refused, ...counts } = summary
    if (options.output === 'json') terminal.print(jsonText(summary, 2))
    else {
      terminal.print(`images   ${counts.images}, of which ${counts.imagesCreated} were created`)
      terminal.print(`tags     ${counts.tagsCreated} were created`)
      terminal.print(`records  ${counts.recordsCreated} were added, ${counts.recordsUnchanged} already existed`)
    }
    for (const { image, problem } of refused) terminal.say(`pinfold: ${plain(image)}: ${plain(problem)}`)
    return refused.length > 0 ? exitCodes.failed : exitCodes.ok
  },
}

async function importAll(
  terminal: Terminal,
  options: Options,
  api: OperatorApi,
  images: ReadonlyMap<string, readonly History[]>,
): Promise<Summary> {
  const group = await groupFor(terminal, options, api)
  const total: Summary = {
    images: images.size,
    imagesCreated: 0,
    tagsCreated: 0,
    recordsCreated: 0,
    recordsUnchanged: 0,
    refused: [],
  }
  const all = [...images.values()].reduce((sum, histories) => sum + recordsIn(histories), 0)
  using bar = progressOf(terminal, 'records', all)
  let done = 0
  for (const [image, histories] of images) {
    bar.at(done)
    try {
      const { uid, made } = await repoOf(api, group, image)
      total.imagesCreated += made ? 1 : 0
      let sent = 0
      for (const some of requestsOf(histories)) {
        const tags = some.map(({ tag, deprecated, records }) => ({ name: tag, deprecated, records }))
        const counts = (await api.post('/control/v1/tagHistory:import', { repoUid: uid, tags })) as Counts
        for (const key of ['tagsCreated', 'recordsCreated', 'recordsUnchanged'] as const) total[key] += counts[key]
        sent += recordsIn(some)
        bar.at(done + sent)
      }
    } catch (error) {
      // If the server refuses an image, the import continues with the next one. If the server is unavailable, the import stops.
      if (!(error instanceof ApiError) || error.exitCode !== exitCodes.failed) throw error
      total.refused.push({ image, problem: error.message })
    }
    done += recordsIn(histories)
  }
  bar.at(done)
  return total
}

function recordsIn(histories: readonly History[]): number {
  return histories.reduce((sum, { records }) => sum + records.length, 0)
}

/**
 * Splits tag histories into requests. If a history does not fit into one request, the next request adds its remaining records.
 */
function* requestsOf(histories: readonly History[]): Generator<History[]> {
  let some: History[] = []
  let room = recordsPerRequest
  for (const { records, ...history } of histories) {
    let from = 0
    do {
      if (
        some.length === tagsPerRequest ||
        (some.length > 0 && room < Math.min(records.length - from, recordsPerRequest))
      ) {
        yield some
        some = []
        room = recordsPerRequest
      }
      const part = records.slice(from, from + room)
      some.push({ ...history, records: part })
      room -= part.length
      from += part.length
    } while (from < records.length)
  }
  if (some.length > 0) yield some
}

async function repoOf(api: OperatorApi, group: string, name: string): Promise<{ uid: string; made: boolean }> {
  const query = { name, 'uidp.children_of': group }
  const { items } = await api.list<{ uid: string }>('/registry/v2/repos', 'repos', query, 1)
  if (items[0]) return { uid: items[0].uid, made: false }
  const { uid } = await api.post(`/registry/v2/repos/${group}`, { name })
  return { uid: String(uid), made: true }
}

/** Tag histories by the name that the repository will have. */
async function readHistories(path: string): Promise<Map<string, History[]>> {
  const images = new Map<string, History[]>()
  for await (const { name: file, text } of inputFiles(path, isJson)) {
    for (const [i, one] of tagsOf(file, text).entries()) {
      const { image, tag, listedAtEnd, history: given } = (one ?? {}) as Record<string, unknown>
      if (typeof image !== 'string' || typeof tag !== 'string' || !Array.isArray(given)) {
        throw failure(`${file}: tags[${i}] must have an image, a tag and a history`)
      }
      const records = (given as ({ updateTimestamp?: unknown; digest?: unknown } | null)[]).map((record) => {
        return { time: String(record?.updateTimestamp ?? ''), digest: String(record?.digest ?? '') }
      })
      const name = image.slice(image.lastIndexOf('/') + 1)
      const ofImage = images.get(name)
      const history = { tag, deprecated: listedAtEnd === false, records }
      if (ofImage) ofImage.push(history)
      else images.set(name, [history])
    }
  }
  return images
}

function tagsOf(file: string, text: string): unknown[] {
  let parsed: unknown
  try {
    parsed = parseUserJson(text)
  } catch (error) {
    throw failure(`${file}: is not valid JSON`, error)
  }
  const tags = (parsed as { tags?: unknown } | null)?.tags
  if (Array.isArray(tags)) return tags
  throw failure(`${file}: has no list "tags"`)
}
