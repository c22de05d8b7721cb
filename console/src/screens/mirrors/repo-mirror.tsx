// Tab of a repository for its mirror and its copies.
import { RepoFrame } from '../repos/repo-frame.tsx'
import { CopiesOf } from './copies.tsx'
import { RepoMirror } from './mirror.tsx'

export function RepoMirrorScreen({ names }: { names: readonly string[] }) {
  return (
    <RepoFrame names={names} view="mirror">
      {({ item }) => (
        <>
          <RepoMirror repo={item.uid} />
          <CopiesOf repo={item} />
        </>
      )}
    </RepoFrame>
  )
}
