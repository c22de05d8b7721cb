import { apiReader, callerOptions } from '../shape/api-pages.ts'
import type { Query } from '../shape/api-reader.ts'
import { type Command, type CommandEntry, type CommandGroup, exitCodes } from '../shape/command.ts'
import { groupOf, namesOf } from '../shape/names.ts'
import { type Item, listFormats, outputOf, printList, type View } from '../shape/outputs.ts'
import { registryOf } from '../shape/session.ts'
import { v1 } from '../shape/v1-names.ts'
import { limitOf, limitOption } from '../shape/verbs.ts'
import { pathsOf, type Repo } from './image-names.ts'
import { imagesDelete } from './images-delete.ts'
import { imagesPulls, imagesReferrers, imagesUnpulled } from './images-digests.ts'
import { imagesHistory } from './images-history.ts'
import { imagesResolve } from './images-resolve.ts'

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

const list: Command = {
  name: 'list',
  summary: 'List the images that you can see',
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

const retention = () => import('./retention.ts')
const ofRules: readonly CommandEntry[] = [
  {
    name: 'retention',
    summary: 'Rules of what is kept, and for how long',
    load: async () => (await retention()).retentionRules,
  },
  {
    name: 'tag-rules',
    summary: 'Rules of which tags never move, and who moves others',
    load: async () => (await retention()).tagRules,
  },
  {
    name: 'holds',
    summary: 'What is kept without a date, until it is released',
    load: async () => (await retention()).holds,
  },
  {
    name: 'quarantine',
    summary: 'Manifests that nobody is to pull',
    load: async () => (await retention()).quarantine,
  },
  {
    name: 'upstreams',
    summary: 'Registries elsewhere that repositories follow',
    load: async () => (await import('./upstreams.ts')).upstreams,
  },
]

const kept: readonly CommandEntry[] = [
  {
    name: 'kept',
    summary: 'Say what keeps a manifest from being deleted, and until when',
    load: async () => (await import('./kept/images-kept.ts')).imagesKept,
  },
  {
    name: 'break-promises',
    summary: 'Delete a manifest or an image although something keeps it',
    load: async () => (await import('./kept/images-kept.ts')).imagesBreakPromises,
  },
]

export const images: CommandGroup = {
  name: 'images',
  summary: 'Look at images, their tags and how these moved, and delete them',
  commands: [
    list,
    {
      name: 'repos',
      summary: 'Repositories: where images are pushed to',
      load: async () => (await import('./repos.ts')).repos,
    },
    {
      name: 'tags',
      summary: 'Tags: where they point, and where they shall',
      load: async () => (await import('./tags.ts')).tags,
    },
    ...ofRules,
    ...kept,
    imagesHistory,
    imagesResolve,
    {
      name: 'diff',
      summary: 'Show what differs from one image to another, in packages and in vulnerabilities',
      load: async () => (await import('../vulnerabilities/vulnerabilities-compare.ts')).imagesDiff,
    },
    imagesReferrers,
    imagesPulls,
    imagesUnpulled,
    imagesDelete,
  ],
}
