// The page to try the service: a picture in, the likeliest classes out, and what speaks for the answer.

const place = (id) => document.getElementById(id);

const RANKED = "The numbers rank the classes and are no probabilities: the network learned another loss than softmax cross-entropy.";

async function ask(path, options = {}) {
  const key = place("key").value;
  const response = await fetch(path, { ...options, headers: key ? { authorization: `Bearer ${key}` } : {} });
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
}

async function listModels() {
  const models = await (await ask("/v2/repository/index", { method: "POST" })).json();
  place("model").replaceChildren(...models.map(({ name }) => new Option(name)));
}

async function answer() {
  if (!place("model").value) await listModels(); // the key has come meanwhile
  const [body] = place("image").files;
  const query = `?model=${encodeURIComponent(place("model").value)}`;
  const { top, done, are_probabilities: areProbabilities } = await (await ask(`/classify${query}`, { method: "POST", body })).json();
  const classes = top.map((each) => `${each.class} (${(100 * each.probability).toFixed(1)} %)`);
  place("answer").textContent = `${classes.join(", ")}. The picture: ${done.join("; ") || "as it is"}.${areProbabilities ? "" : ` ${RANKED}`}`;
  const picture = await ask(`/explain${query}`, { method: "POST", body });
  const image = place("explained");
  URL.revokeObjectURL(image.src);
  Object.assign(image, { src: URL.createObjectURL(await picture.blob()), alt: "What speaks for the answer" });
  place("evidence").hidden = false;
}

const say = (error) => { place("answer").textContent += ` ${error.message}`; };
place("form").addEventListener("submit", (event) => {
  event.preventDefault();
  place("answer").textContent = "";
  place("evidence").hidden = true;
  answer().catch(say);
});
listModels().catch(say);
place("curl").textContent = `curl -F image=@seven.png ${window.location.origin}/classify`;
