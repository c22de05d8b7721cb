import { apiReader, callerOptions } from '../shape/api-pages.ts'
import type { Query } from '../shape/api-reader.ts'
import { type Command, exitCodes } from '../shape/command.ts'
import { groupOf, namesOf } from '../shape/names.ts'
import { type Item, listFormats, outputOf, printList, type View } from '../shape/outputs.ts'
import { registryOf } from '../shape/session.ts'
import { v1 } from '../shape/v1-names.ts'
import { limitOf, limitOption } from '../shape/verbs.ts'
import { pathsOf, type Repo } from './image-names.ts'

type Image = Repo & Item & { image: string }

const view: View<Image> = {
  word: 'IMAGE',
  columns: {
    IMAGE: ({ image }) => image,
    UPDATED: ({ updateTime }) => updateTime,
    ABOUT: ({ description }) => description,
  },
  more: { UID: ({ uid }) => uid },
  label: ({ image }) => image,
  at: ({ image }) => image,
  // Scripts read these by the names of either version.
  json: (image) => ({ ...image, ...v1()(image) }),
}

export const imagesList: Command = {
  options: [
    { flags: '--group <group>', summary: 'Only those below this group: its name as ORG or ORG/FOLDER, or its uid' },
    limitOption,
    outputOf(listFormats),
    ...callerOptions,
  ],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const group = options.group === undefined ? undefined : await groupOf(api, String(options.group))
    const query: Query = { 'uidp.descendants_of': group }
    const { items, more } = await api.list<Repo>('/registry/v2/repos', 'repos', query, limitOf(options))
    const paths = await pathsOf(api, items)
    const shown = items
      .map((repo) => ({ ...repo, image: `${registryOf(api.session)}/${paths.get(repo.uid)}` }))
      .sort((a, b) => (a.image < b.image ? -1 : 1))
    printList(terminal, options.output, view, shown, await namesOf(api, [], []))
    if (more) terminal.say('pinfold: there is more; --limit shows it')
    return exitCodes.ok
  },
}
