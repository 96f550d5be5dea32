/**
 * A trainer in the studio's server, on any floor. local.js has the same functions without a server.
 *
 * A scene is what groundup/studio/playground/picture.py calls so, with `picture` and `curves`; in a picture the grids
 * have become typed arrays.
 */

import { listen, post } from "/static/common/api.js";
import { bytes } from "/static/common/embedded.js";

const ENDED = "The studio has ended this training, because it ends itself or because this tab was not reachable for a while. Load the page again to begin a new one.";

/** Open a training: { scene, step, run, pause, begin, change, close }. onpicture is called with each new picture. */
export async function open(settings, onpicture) {
  const { session, ...scene } = await post("/api/playground/open", { settings });
  const act = (name, body = {}) => post(`/api/playground/${name}`, { session, ...body });
  const stream = listen(
    `/api/playground/watch?session=${encodeURIComponent(session)}`,
    (picture) => onpicture(unpacked(picture)),
    () => onpicture({ error: ENDED }),
  );
  return {
    scene: unpackedScene(scene),
    step: async (count = 1) => unpacked(await act("step", { count })),
    run: async (speed = 1) => unpacked(await act("run", { speed })),
    pause: async () => unpacked(await act("pause")),
    begin: async () => unpackedScene(await act("begin")),
    change: async (next) => unpackedScene(await act("change", { settings: next })),
    close: () => stream.close(),
  };
}

function unpackedScene(scene) {
  return { ...scene, image: scene.image && new Int8Array(bytes(scene.image).buffer), picture: unpacked(scene.picture) };
}

function unpacked(picture) {
  if (picture.surface) picture.surface = bytes(picture.surface);
  if (picture.tiles) picture.tiles = picture.tiles.map((each) => new Int8Array(bytes(each).buffer));
  if (picture.images) picture.images = new Int8Array(bytes(picture.images).buffer);
  return picture;
}
