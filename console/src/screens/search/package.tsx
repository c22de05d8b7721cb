// Images that contain a package.
import type { ListImagesWithPackageResponseJson } from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import { ask, type Full } from '../../data/api.ts'
import { namesOfRepo } from '../../data/names.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Screen } from '../../ui/screen.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { searchWords } from '../../words/search.ts'
import { words } from '../../words.ts'
import { ImageLink, TagLinks } from './search.tsx'

type Image = Full<ListImagesWithPackageResponseJson>['images'][number] & { names: readonly string[] }

export function PackageScreen({ name }: { name: string }) {
  return (
    <Screen title={searchWords.imagesWith(name)}>
      <Images name={name} after="" />
    </Screen>
  )
}

function Images({ name, after }: { name: string; after: string }) {
  const found = useLoad(`package ${name} ${after}`, (signal) => readImages(name, after, signal))
  return (
    <Shown of={found}>
      {({ images, unknown, next }) => (
        <>
          {unknown > 0 && <Note kind="warn">{searchWords.unknownPackages(unknown)}</Note>}
          {images.length === 0 && next === '' ? (
            <Empty>{searchWords.noImagesWith(name)}</Empty>
          ) : (
            <Table
              caption={searchWords.imagesWith(name)}
              columns={columns}
              items={images}
              keyOf={({ repoUid, digest }) => repoUid + digest}
            />
          )}
          <More next={next}>{(more) => <Images name={name} after={more} />}</More>
        </>
      )}
    </Shown>
  )
}

async function readImages(name: string, after: string, signal: AbortSignal) {
  const query = { name, pageSize: 50, pageToken: after }
  const answer = await ask<Full<ListImagesWithPackageResponseJson>>('GET', '/registry/v2/imagesWithPackage', {
    query,
    signal,
  })
  const images: Image[] = await Promise.all(
    answer.images.map(async (image) => ({ ...image, names: await namesOfRepo(image.repoUid) })),
  )
  return { images, unknown: answer.unknownImages, next: answer.nextPageToken }
}

const columns: Column<Image>[] = [
  { title: words.image, isHead: true, cell: ({ names, digest }) => <ImageLink names={names} digest={digest} /> },
  { title: searchWords.currentTags, cell: (image) => <TagLinks {...image} /> },
  { title: words.packages, cell: ({ packages }) => <bdi>{packages.map(({ purl }) => purl).join(', ')}</bdi> },
]
