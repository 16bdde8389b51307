(* Proposition 4.1: HSIC over the conditional deviations, and the expected-MMD bound.

   Formalized: both parts, for Z and S with finitely many values.
   Weaker than the paper: finite spaces.
   Stronger: the kernels need not be characteristic, and the bound kappa on the
   diagonal of k_S is needed only at values s that occur.
   Hypotheses: p is a joint law, k and l are kernels (k_Z and k_S).
   The first part needs no property of the kernels at all. The second needs a
   field with square roots, because MMD is one. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* begin Proposition 4.1, decomposition *)
Theorem decomposition (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) :
  joint_law p ->
  hsic k l p = \sum_s \sum_t marginal_s p s * marginal_s p t
                 * (form k (deviation p s) (deviation p t) * l s t).
(* end Proposition 4.1, decomposition *)
Proof. by move=> p_law; exact: hsic_decomposition. Qed.

(* begin Proposition 4.1, bound *)
Definition mmd (R : rcfType) (T : finType) (k : T -> T -> R) (P Q : T -> R) : R :=
  Num.sqrt (mmd2 k P Q).

Theorem expected_mmd_bound (R : rcfType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) (kappa : R) :
  joint_law p -> kernel k -> kernel l ->
  (forall s, marginal_s p s != 0 -> l s s <= kappa) ->
  hsic k l p
    <= kappa * (\sum_s marginal_s p s * mmd k (conditional p s) (marginal_z p)) ^+ 2.
(* end Proposition 4.1, bound *)
Proof.
move=> p_law kk kl lk.
have p0 := marginal_s_ge0 p_law.
rewrite (hsic_decomposition p_law) expr2 big_distrlr mulr_sumr /=.
apply: ler_sum => s _; rewrite mulr_sumr; apply: ler_sum => t _.
set ms := mmd _ (conditional p s) _; set mt := mmd _ (conditional p t) _.
have -> : kappa * (marginal_s p s * ms * (marginal_s p t * mt))
          = marginal_s p s * marginal_s p t * (ms * mt * kappa) by ring.
have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite !mul0r.
have [->|t0] := eqVneq (marginal_s p t) 0; first by rewrite !mulr0 !mul0r.
apply: ler_wpmul2l; first exact: mulr_ge0.
apply: le_trans (ler_norm _) _; rewrite normrM.
have l0 u : 0 <= l u u by have [_ /(_ (point R u))] := kl; rewrite /quad form_points.
have k0 : 0 <= kappa by apply: le_trans (lk s s0).
apply: ler_pmul => //.
  rewrite /ms /mt /mmd /mmd2 -sqrtrM; last by case: kk.
  rewrite -sqrtr_sqr; apply: ler_wsqrtr; exact: form_cauchy_schwarz.
have := form_cauchy_schwarz (point R s) (point R t) kl; rewrite /quad !form_points => h.
rewrite -(ger0_norm k0) -ler_sqr ?nnegrE ?normr_ge0 // !real_normK ?num_real //.
by apply: le_trans h _; rewrite expr2; apply: ler_pmul => //; exact: lk.
Qed.

(* The hypotheses hold for a fair coin Z = S, and HSIC is not zero there. *)
Example hypotheses_hold (R : rcfType) :
  let p := @coin R in
  [/\ joint_law p, kernel (@equal R bool_finType),
      forall s, marginal_s p s != 0 -> equal s s <= 1 :> R & hsic equal equal p = 4%:R^-1].
Proof.
split; [exact: coin_law | exact: equal_kernel | by move=> s _; rewrite /equal eqxx | exact: coin_hsic].
Qed.
