/* convert/known.c: published revisions of Qwen3 by the SHA-256 of their files [R4]. The hashes of the small files were
 * recomputed from byte-exact copies; those of the weights are the ones several independent public projects pin. */
#include "convert/hf.h"

#define GENERATION "2325da0f15bb848e018c5ae071b7943332e9f871d6b60e2ed22ca97d4cb993d2"
#define TOKENIZER "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"
#define TOKENIZER_CONFIG "d5d09f07b48c3086c508b30d1c9114bd1189145b74e982a265350c923acd8101"

const slm2_known_revision slm2_known_revisions[] = {
    {"Qwen/Qwen3-0.6B", "c1899de289a04d12100db370d81485cdf75e47ca", "apache-2.0",
     "660db3b73d788119c04535e48cf9be5f55bc3100841a718637ae695b442f27dd", GENERATION, TOKENIZER, TOKENIZER_CONFIG, 1,
     {{1503300328, "f47f71177f32bcd101b7573ec9171e6a57f4f4d31148d38e382306f42996874b"}}},
    {"Qwen/Qwen3-1.7B", "70d244cc86ccca08cf5af4e1e306ecf908b1ad5e", "apache-2.0",
     "1ddb5b89ebc90dcb417a45c213d818577e65976454d29385c8f6140771d95197", GENERATION, TOKENIZER, TOKENIZER_CONFIG, 2,
     {{3441185608, "169ad53ec313c3a34b06c0809216e4fc072cce444a5d4ff2b59690d064130ed5"},
      {622329984, "912becff8d60672aa8628ef08c05898d9adf17c2ad4ae3caf99b065622fdeff9"}}},
    {"Qwen/Qwen3-4B", "1cfa9a7208912126459214e8b04321603b3df60c", "apache-2.0",
     "8ba006f74fecfaaeb392872a60f4a480e7ec9860153d2e1b769ec81f9a147f8a", GENERATION, TOKENIZER, TOKENIZER_CONFIG, 3,
     {{3957900840, "328a91d3122359d5547f9d79521205bc0a46e1f79a792dfe650e99fc2d651223"},
      {3987450520, "6cd087b316306a68c562436b5492edbcf6e16c6dba3a1308279caa5a58e21ca5"},
      {99630640, "e4bf436957184f4eeb86a80e9db394503f1f56446b2e6b7edeac5b81470f4ca1"}}},
    {"Qwen/Qwen3-8B", "b968826d9c46dd6066d109eabc6255188de91218", "apache-2.0",
     "f7c4eadfbbf522470667b797a3c89be2524832d2d599797248dc304fff447c30", GENERATION, TOKENIZER, TOKENIZER_CONFIG, 5,
     {{3996250744, "31d6a825ae35f11fb85b195b4c42c146c051e446433125a215336abdf95cbf5f"},
      {3993160032, "5991236cea6fe21f3d43cab0f0e84448734fbbe0789816202989f2ddc9d18282"},
      {3959604768, "c5185c4794be2d8a9784d5753c9922db38df478ce11f9ed0b415b7304d896836"},
      {3187841392, "b5ee7de71fbf17db3d5704e0c8f2bc7d005ca9e1d7ca2aeb19827b0cfcaa917a"},
      {1244659840, "20c2d6366ab85c90786ccdd829cd2b9e7d30ef3b2ebbb998280e7e4014b542ff"}}},
};
const uint32_t slm2_n_known_revisions = sizeof slm2_known_revisions / sizeof slm2_known_revisions[0];
