// Tags and images of a repository.
import type { Screens } from '../app/area.ts'
import { DiffScreen } from '../screens/digests/diff.tsx'
import { DigestScreen } from '../screens/digests/digest.tsx'
import { TagScreen } from '../screens/tags/tag.tsx'

export const screens: Screens = {
  tag: ({ names, tail, query }) => <TagScreen names={names} tag={tail[1] ?? ''} query={query} />,
  digest: ({ names, tail, query }) => <DigestScreen names={names} digest={tail[1] ?? ''} query={query} />,
  diff: ({ names, tail }) => {
    const [older = '', newer = ''] = (tail[1] ?? '').split('..')
    return <DiffScreen names={names} older={older} newer={newer} />
  },
}
