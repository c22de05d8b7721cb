// Which images have a list of packages, for those who know what is in the lists.
export {
  hashesInUse,
  type ImageCursor,
  imagesOfList,
  type ListedImage,
  type ListName,
  listsBelow,
  liveTags,
  reposOfLists,
  type TaggedImage,
  unknownBelow,
} from './image-lists.store.ts'
